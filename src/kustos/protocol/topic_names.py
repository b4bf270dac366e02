"""Names of topics: which are valid, and which are Kafka's own."""

import re
from typing import Final

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""`Topic.isInternal`: no ACL lets a client write to them in a transaction, nor have them in a topology."""

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
TOPIC_NAME_LENGTH_MAX: Final = 249
"""`Topic.MAX_NAME_LENGTH`: the longest that a broker turns into a file name."""


def is_topic_name(name: str) -> bool:
    """Return whether a topic can have this name (`Topic.validate`)."""
    is_path = name in {".", ".."}
    return not is_path and len(name) <= TOPIC_NAME_LENGTH_MAX and TOPIC_NAME.fullmatch(name) is not None
