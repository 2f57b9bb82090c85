"""The commands: a module for each family, and beside it what they show."""
