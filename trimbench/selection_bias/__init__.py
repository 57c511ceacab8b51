"""Bayesian naive Bayes classifiers that know that their features were selected.

Li, Zhang and Neal (2008), *A method for avoiding bias from feature selection with application to naive Bayes
classification models*.
"""
