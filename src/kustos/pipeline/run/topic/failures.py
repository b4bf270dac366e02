"""Errors of the JVM's Kafka client as messages that name the cause and the fix."""

import re
from typing import Final

from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.spark_failures import whole_text

LONGEST_DETAIL: Final = 300
"""Characters of an unknown failure that are shown: its first line, not the stack of a JVM."""

KNOWN: Final = (
    (
        r"DATA_SOURCE_NOT_FOUND|Failed to find (?:the )?data source",
        "Spark has no Kafka connector, run `kustos pipeline jars --out DIR` and give the session these jars",
    ),
    (
        r"SaslAuthenticationException|Authentication failed",
        "the brokers at `{brokers}` refused the login, check `sasl.mechanism` and `sasl.jaas.config`",
    ),
    (
        r"SslAuthenticationException|SSLHandshakeException|SSL handshake failed",
        "the TLS handshake with `{brokers}` failed, check the `ssl.*` keys and the brokers' certificates",
    ),
    (
        r"TopicAuthorizationException|Not authorized to access topics",
        "no permission to read topic `{topic}`: it needs READ and DESCRIBE on the topic",
    ),
    (
        r"GroupAuthorizationException|Not authorized to access group",
        "no permission for Spark's consumer group: it needs READ on the groups prefixed `spark-kafka-`",
    ),
    (
        r"UnknownTopicOrPartition|Failed to get offsets of|does not host this topic-partition"
        r"|does not exist(?! in the JVM)",
        "topic `{topic}` does not exist at `{brokers}`, or was deleted while it was read",
    ),
    (
        r"PARTITIONS_DELETED|have been deleted|offset was changed|data may have been lost|data was lost"
        r"|OffsetOutOfRange|KAFKA_DATA_LOSS|are gone",
        "records of topic `{topic}` were deleted before they were read (retention, or the topic was deleted "
        "or recreated); read it into a new checkpoint to continue with the remaining records",
    ),
    (
        r"No resolvable bootstrap urls",
        "no address in `{brokers}` can be resolved, check `bootstrap.servers`",
    ),
    (
        r"LoginException|Unable to find LoginModule|ConfigException|Invalid value .* for configuration"
        r"|KafkaException: Failed to (?:construct|create)",
        "Kafka's client does not accept the properties: check protocol, mechanism and the files named",
    ),
    (
        r"TimeoutException|Timed out|disconnected|TIMED_OUT",
        "the brokers at `{brokers}` do not answer, check the address, the listener and `security.protocol`",
    ),
)
"""The first match counts: causes come before their consequences."""


def kafka_failure(error: BaseException, settings: TopicSettings) -> KafkaInputError | None:
    """Return the typed error for an exception of reading a topic; None for one of another kind."""
    text = whole_text(error)
    for pattern, sentence in KNOWN:
        if re.search(pattern, text):
            message = sentence.format(topic=settings.topic, brokers=settings.bootstrap_servers)
            return KafkaInputError(message)
    if "kafka" in text.lower():
        first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
        return KafkaInputError(
            f"cannot read topic `{settings.topic}`: {settings.blotted(first)[:LONGEST_DETAIL]}"
        )
    return None
