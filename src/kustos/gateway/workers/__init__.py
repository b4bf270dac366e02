"""Several processes that serve one node's clients, and the one that owns its metadata."""
