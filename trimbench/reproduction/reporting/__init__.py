"""Tables, figures and verdicts from finished rows; nothing here computes a result."""
