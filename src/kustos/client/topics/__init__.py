"""Reads the committed records of a topic, and what its partitions hold: bytes of batches, not yet records."""

from kustos.client.topics.limits import FetchLimits
from kustos.client.topics.messages import AbortedTransaction, Fetched, TopicDescription
from kustos.client.topics.reader import TopicReader

__all__ = ["AbortedTransaction", "FetchLimits", "Fetched", "TopicDescription", "TopicReader"]
