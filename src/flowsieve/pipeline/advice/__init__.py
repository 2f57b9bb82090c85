"""Which way to address packets suits a workload and a network."""
