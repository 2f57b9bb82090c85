"""What tables do to events: a proof over the whole space, and the path of one event."""
