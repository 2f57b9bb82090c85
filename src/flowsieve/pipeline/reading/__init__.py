"""Events, subscriptions and schemas from files; rows that cannot be used are set aside, each with the reason."""
