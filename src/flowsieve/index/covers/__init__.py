"""Covers: the dz that stand for a filter, exact or under a budget."""
