"""Looking into the files of a metadata log, ours or a real Kafka's, without changing them."""
