"""What was decided of a model when it was optimized and partitioned, kept on disk for the next session of it."""
