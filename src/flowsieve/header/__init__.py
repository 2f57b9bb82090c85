"""How events are labelled in packets, what entries match, and the groups of hosts."""
