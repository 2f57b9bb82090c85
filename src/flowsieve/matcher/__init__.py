"""Matching on a host: which receivers want an event, for all publishers of the host."""
