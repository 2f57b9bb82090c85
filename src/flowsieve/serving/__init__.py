"""The controller as a service: what clients, operators and their tools talk to."""
