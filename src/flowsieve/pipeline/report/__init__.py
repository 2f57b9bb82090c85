"""Figures and plots: what bits, dimensions and entries are worth, and how plans cut the space."""
