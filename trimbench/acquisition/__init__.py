"""What to ask next: the features of a row whose values are worth most for their cost, and whole policies of asking."""
