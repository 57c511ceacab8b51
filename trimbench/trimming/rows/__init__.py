"""Trimming by the rows of a data set, or by a blend of the model and the rows."""
