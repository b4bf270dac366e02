"""Random scenarios ("worlds") of ACL changes and questions, answered by kustos, Kafka and a specification."""
