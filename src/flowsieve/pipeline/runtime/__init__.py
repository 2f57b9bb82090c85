"""Working on Spark: sessions, what is sent to executors, samples and batches of events, progress."""
