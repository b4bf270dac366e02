"""SCRAM users as Kafka stored them below `/config/users`: the node's name, and the text of a credential.

The name is percent-encoded, after `org.apache.kafka.common.utils.Sanitizer`. The text is
`salt=..,stored_key=..,server_key=..,iterations=..` with Base64, after `ScramCredentialUtils`. No error
message contains any part of a credential.
"""

import base64
import binascii
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from kustos.metadata import ScramCredential

_ESCAPES: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")
_ITERATIONS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class ScramTextError(ValueError):
    """A name or a credential that Kafka did not write; the message shows no secret."""


def user_of(node: str) -> str:
    """Return the user of a node below `/config/users`; raise `ScramTextError`."""
    if not _ESCAPES.fullmatch(node):
        raise ScramTextError(
            f"`{node}` is not an encoded name, a `%` is not followed by two hexadecimal digits"
        )
    try:
        # Java's decoder reads a plus as a space, though Kafka writes `%20`
        return unquote_to_bytes(node.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise ScramTextError(f"`{node}` is not an encoded name, its bytes are not UTF-8") from None


def credential_of(text: str) -> ScramCredential:
    """Return the credential parsed from a text; raise `ScramTextError`."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in _FIELDS or name in fields:
            raise ScramTextError(f"it is not written as `{'=..,'.join(_FIELDS)}=..`, each once")
        fields[name] = value
    missing = [name for name in _FIELDS if not fields.get(name)]
    if missing:
        raise ScramTextError(f"it has no `{missing[0]}`")
    if not _ITERATIONS.fullmatch(fields["iterations"]):
        raise ScramTextError("its `iterations` are not a number")
    return ScramCredential(
        _bytes("salt", fields),
        _bytes("stored_key", fields),
        _bytes("server_key", fields),
        int(fields["iterations"]),
    )


def _bytes(name: str, fields: dict[str, str]) -> bytes:
    try:
        return base64.b64decode(fields[name], validate=True)
    except (binascii.Error, ValueError):
        raise ScramTextError(f"its `{name}` is not Base64") from None
