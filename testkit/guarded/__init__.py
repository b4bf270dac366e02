"""A real Kafka behind a real kustos, with every frame recorded on both sides of it."""
