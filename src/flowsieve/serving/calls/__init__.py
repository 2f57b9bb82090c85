"""Calls of clients, however they come: sessions, leases, tokens, each call carried out once."""
