"""How good plans are: covers of subscriptions, for each or for a whole table, and what these deliver."""
