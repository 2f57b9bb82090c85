"""Instruments that tests and benchmarks share; nothing else imports them."""
