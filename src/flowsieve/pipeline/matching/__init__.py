"""Which subscriptions events match, by bitsets over boxes; and statistics of both."""
