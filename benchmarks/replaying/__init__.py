"""What the benchmarks of replays share: an estate, its recorded events, both sides of each comparison."""
