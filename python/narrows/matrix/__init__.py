"""Measures the pairwise fairness of congestion controllers: shares of goodput, and harm to each other."""
