"""Synthetic workloads, the same for the same seed however they are split."""
