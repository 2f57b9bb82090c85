"""What the service counts and measures, for Prometheus."""
