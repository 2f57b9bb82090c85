"""What clients report of events, taken in, checked and landed as files that the pipeline reads."""
