"""Going over to another index while events are published: who uses which, and what is still owed to whom."""
