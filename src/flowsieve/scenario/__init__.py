"""Scenarios: a content space, a network and what happens there; read, played, priced, reported."""
