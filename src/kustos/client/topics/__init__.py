"""Reads the committed batches of a topic as bytes, and the offsets of its partitions."""

from kustos.client.topics.limits import FetchLimits
from kustos.client.topics.messages import AbortedTransaction, Fetched, TopicDescription
from kustos.client.topics.reader import TopicReader

__all__ = ["AbortedTransaction", "FetchLimits", "Fetched", "TopicDescription", "TopicReader"]
