"""Searches for the best feature subset within a budget."""
