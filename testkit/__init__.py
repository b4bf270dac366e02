"""What tests, benchmarks and the demo share: the real Kafka, started on this machine. Not in the wheel."""
