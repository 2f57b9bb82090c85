"""Calls that come through the network itself."""
