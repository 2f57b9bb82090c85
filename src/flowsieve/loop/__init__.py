"""The whole loop on one machine: real switches, traffic that changes, the stream, and a plan that follows."""
