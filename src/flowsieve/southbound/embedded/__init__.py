"""Switches in this process, with a clock of their own."""
