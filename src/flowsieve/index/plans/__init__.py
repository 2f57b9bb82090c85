"""The kinds of plans: where each cuts its cells, and how it encodes events."""
