"""What upstream keeps in place of the expression by which a member subscribes to topics (KIP-848).

Upstream gets the topics by name, and in the place of the expression one that quotes it and matches nothing:
no name of a topic begins with a slash. Upstream keeps it with the member and shows it in its descriptions,
from which kustos reads the member's own. Brokers never read what a user wrote as an expression: the engine of
some (RE2/J 1.8) does not always end.
"""

import re
from collections.abc import Collection
from typing import Final

from kustos.protocol.topic_names import TOPIC_NAME

OPENING: Final = r"/\Q"
CLOSING: Final = r"\E"
QUOTED_CLOSING: Final = r"\E\\E\Q"
"""What stands for a `\\E` between the two: it would end the quotation."""

NAMES: Final = re.compile(r"(?:\|/[a-zA-Z0-9._-]+)*\Z")
"""What follows an expression: the topics that the member named beside it."""


def shown_upstream(text: str, names: Collection[str]) -> str:
    """Return what upstream keeps for an expression and the topics that the member also names."""
    legal = [f"|/{name}" for name in names if TOPIC_NAME.fullmatch(name)]
    return "".join((OPENING, text.replace(CLOSING, QUOTED_CLOSING), CLOSING, *legal))


def shown_to_clients(kept: str) -> tuple[str, list[str]] | None:
    """Return the expression and the named topics in what upstream keeps, None if kustos did not send it."""
    end = NAMES.search(kept)
    names_at = len(kept) if end is None else end.start()
    quoted = kept[:names_at]
    if not (quoted.startswith(OPENING) and quoted.endswith(CLOSING)):
        return None
    text = quoted[len(OPENING) : -len(CLOSING)].replace(QUOTED_CLOSING, CLOSING)
    return text, [name for name in kept[names_at:].split("|/") if name]
