"""kustos: the security plane of Apache Kafka."""

__version__ = "0.1.0"
