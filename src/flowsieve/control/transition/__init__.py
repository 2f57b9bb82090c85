"""From one index to another, while events are published: phases in which nothing is lost."""
