"""The content space: schemas, filters over them, and events in them. Pure values; nothing here does I/O."""
