"""Jobs, the store for their records, and the executors that run them."""
