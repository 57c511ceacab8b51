"""Jobs, the store of their records, and the executors that run them."""
