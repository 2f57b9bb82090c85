"""What each switch should hold, what it is believed to hold, and how it gets there."""
