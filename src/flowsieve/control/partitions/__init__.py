"""Partitions of the event space, and who decides on which of them."""
