"""Coverage-guided searches."""
