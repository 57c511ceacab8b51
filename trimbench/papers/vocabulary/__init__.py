"""What an experiment takes and gives: inputs, cells, numbers, tables and figures."""
