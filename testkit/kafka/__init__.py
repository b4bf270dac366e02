"""Real Kafka brokers on this machine: nodes, clusters and Kafka's own command-line tools."""

from testkit.jars import KAFKA, JarsError, JarSet
from testkit.kafka.cluster import ClusterFactory, KafkaCluster
from testkit.kafka.listeners import PLAINTEXT, SASL_PLAINTEXT, Listener
from testkit.kafka.node import SNAPSHOTS_OFTEN, STANDARD_AUTHORIZER, KafkaNode, NodeFactory, NodeSettings
from testkit.kafka.tools import KafkaTools, ToolResult
from testkit.kafka.topics import count_records, make_topics
from testkit.processes import ChildError

__all__ = [
    "KAFKA",
    "PLAINTEXT",
    "SASL_PLAINTEXT",
    "SNAPSHOTS_OFTEN",
    "STANDARD_AUTHORIZER",
    "ChildError",
    "ClusterFactory",
    "JarSet",
    "JarsError",
    "KafkaCluster",
    "KafkaNode",
    "KafkaTools",
    "Listener",
    "NodeFactory",
    "NodeSettings",
    "ToolResult",
    "count_records",
    "make_topics",
]
