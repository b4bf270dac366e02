"""What the benchmark of the gateway is made of: a dumb relay, Kafka's perf tools, what a process takes."""
