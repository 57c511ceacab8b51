"""Probabilistic models: Bayesian networks and naive Bayes, their readers and how they are learned."""
