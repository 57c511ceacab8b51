"""Bayesian naive Bayes classifiers that account for the selection of their features.

Li, Zhang and Neal (2008), *A method for avoiding bias from feature selection with application to naive Bayes
classification models*.
"""
