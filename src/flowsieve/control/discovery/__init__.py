"""Switches, links and hosts that are found, and networks that grow by them."""
