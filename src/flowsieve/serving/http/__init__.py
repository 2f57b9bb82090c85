"""The HTTP server: calls of clients, and views for people and their tools."""
