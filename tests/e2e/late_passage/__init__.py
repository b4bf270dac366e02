"""What a client sends behind a request that waits at a broker, and changes that take its rights meanwhile."""
