"""Matching on publishers' hosts, where labels say whom an event is for."""
