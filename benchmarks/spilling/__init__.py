"""Jobs whose states are larger than the memory that their executors have."""
