"""`make demo`: a real Kafka, kustos before it, real clients, and what each of them gets to hear."""
