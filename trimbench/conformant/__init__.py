"""Conformant learning: naive Bayes models that agree with a logistic regression and know its features."""
