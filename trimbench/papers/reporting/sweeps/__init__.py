"""The points of a sweep together: one table, figures and a page."""
