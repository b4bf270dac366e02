"""Quoting of the regular expression by which a member subscribes to topics (KIP-848).

kustos sends upstream the topics by name, and an expression that quotes the member's own and matches no topic,
since no topic name begins with a slash. Upstream keeps the quoted expression with the member and returns it
in descriptions, from which kustos restores the member's own. Brokers never evaluate an expression from a
user: some regular expression engines (RE2/J 1.8) do not always terminate.
"""

import re
from collections.abc import Collection
from typing import Final

from kustos.protocol.topic_names import TOPIC_NAME

OPENING: Final = r"/\Q"
CLOSING: Final = r"\E"
QUOTED_CLOSING: Final = r"\E\\E\Q"
"""Replaces each `\\E` in the quoted text, which would otherwise end the quotation."""

NAMES: Final = re.compile(r"(?:\|/[a-zA-Z0-9._-]+)*\Z")
"""The topics that the member named in addition to its expression; they follow the quoted expression."""


def shown_upstream(text: str, names: Collection[str]) -> str:
    """Return the quoted form of an expression and of the topics that the member also names."""
    legal = [f"|/{name}" for name in names if TOPIC_NAME.fullmatch(name)]
    return "".join((OPENING, text.replace(CLOSING, QUOTED_CLOSING), CLOSING, *legal))


def shown_to_clients(kept: str) -> tuple[str, list[str]] | None:
    """Return the expression and the named topics of a quoted form, None if kustos did not send it."""
    end = NAMES.search(kept)
    names_at = len(kept) if end is None else end.start()
    quoted = kept[:names_at]
    if not (quoted.startswith(OPENING) and quoted.endswith(CLOSING)):
        return None
    text = quoted[len(OPENING) : -len(CLOSING)].replace(QUOTED_CLOSING, CLOSING)
    return text, [name for name in kept[names_at:].split("|/") if name]
