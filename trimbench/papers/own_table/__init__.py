"""A study of one's own table: which features to keep, what missing ones cost, and whether to believe the confidence."""
