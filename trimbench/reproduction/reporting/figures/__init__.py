"""Figures: their points and descriptions as files, and the pictures drawn from both."""
