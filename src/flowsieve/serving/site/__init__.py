"""Where a controller finds its switches, and what differs from its configuration."""
