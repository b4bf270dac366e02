"""Topic names: valid names, and the names of Kafka's internal topics."""

import re
from typing import Final

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""`Topic.isInternal`: no ACL allows clients to write to them in a transaction or use them in a topology."""

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
TOPIC_NAME_LENGTH_MAX: Final = 249
"""`Topic.MAX_NAME_LENGTH`: the longest name that a broker can use as a file name."""


def is_topic_name(name: str) -> bool:
    """Return whether a topic can have this name (`Topic.validate`)."""
    is_path = name in {".", ".."}
    return not is_path and len(name) <= TOPIC_NAME_LENGTH_MAX and TOPIC_NAME.fullmatch(name) is not None
