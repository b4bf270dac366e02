"""Truth: the metadata log in Kafka's own bytes, the state it adds up to, and how both are changed."""
