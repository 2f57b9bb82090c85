"""Requests from the moment they are taken until switches have followed, and their outcomes."""
