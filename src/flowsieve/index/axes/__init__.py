"""Axes: the places that the values of an attribute have, between even or learned cuts."""
