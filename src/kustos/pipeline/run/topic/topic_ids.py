"""Which topic of which cluster a name means now: ids that a topic recreated does not share.

The JVM's admin client looks them up, with the properties and the login of the source itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.run.topic.records import kafka_errors
from kustos.pipeline.run.topic.settings import TopicSettings

_ADMIN: Final = "org.apache.kafka.clients.admin.Admin"
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""What brokers before 2.8 say for the id of a topic (KIP-516): all bits 0."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """A cluster's id and a topic's id in it, as Kafka writes them; None if its brokers have no such ids."""

    cluster_id: str
    topic_id: str | None


class TopicIdentities:
    """Looks up the identity of a topic, again and again on one connection."""

    def __init__(self, admin: Any, settings: TopicSettings, collections: Any) -> None:
        self._admin, self._settings, self._collections = admin, settings, collections

    def ask(self) -> TopicIdentity:
        """Return the identity of the topic; raise `KafkaInputError` if it is missing or hidden."""
        topic = self._settings.topic
        with kafka_errors(self._settings):
            cluster_id = self._admin.describeCluster().clusterId().get()
            names = self._collections.singletonList(topic)
            found = self._admin.describeTopics(names).allTopicNames().get().get(topic)
            topic_id = str(found.topicId().toString())
        if cluster_id is None:
            raise KafkaInputError(f"the brokers at `{self._settings.bootstrap_servers}` report no cluster id")
        return TopicIdentity(str(cluster_id), None if topic_id == _NO_ID else topic_id)


@contextmanager
def topic_ids(spark: SparkSession, settings: TopicSettings) -> Iterator[TopicIdentities]:
    """Yield the means to ask for a topic's identity; the session is not one of Spark Connect.

    Raises `KafkaInputError` if the session has no Kafka connector, or the client refuses the properties.
    """
    jvm: Any = spark._jvm
    with kafka_errors(settings):
        properties = jvm.java.util.Properties()
        for key, value in settings.client_options().items():
            properties.setProperty(key, value)
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        try:
            jvm.java.lang.Class.forName(_ADMIN, True, loader)
        except Exception as error:
            if "ClassNotFoundException" not in str(error):
                raise
            raise KafkaInputError(
                "Spark has no Kafka connector, run `kustos pipeline jars --out DIR` "
                "and give the session these jars"
            ) from None
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        yield TopicIdentities(admin, settings, jvm.java.util.Collections)
    finally:
        admin.close()
