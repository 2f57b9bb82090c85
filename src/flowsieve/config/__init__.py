"""Reading files that people wrote, and telling all their mistakes at once, each with its place."""
