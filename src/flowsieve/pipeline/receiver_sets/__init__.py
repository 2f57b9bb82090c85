"""Which hosts share a set of receivers, learned from who wants the same events."""
