"""What `kustos acls --help` teaches: principals, hosts, resources, and the operations that requests need."""

import textwrap
from collections.abc import Iterator
from typing import Final

from kustos.acl import SUPPORTED_OPERATIONS
from kustos.cli.acls.required_operations import REQUESTS

WIDTH: Final = 76
"""Columns of a line without the indentation of the epilog; a terminal has 80."""

_PARAGRAPHS: Final = (
    (
        "Principals",
        "An ACL names one principal as TYPE:NAME, such as User:alice. User:* is every principal, also one "
        "without a login (User:ANONYMOUS). With TLS the name is the subject of the certificate, unless "
        "ssl.principal.mapping.rules shorten it. Other patterns do not exist: User:al* is one name.",
    ),
    (
        "Hosts",
        "An ACL applies to one IP address of clients, or to * for all, which is the default. From "
        "metadata.version 4.4-IV1 on it may name a range: 10.0.0.0/8. Host names match no client.",
    ),
    (
        "Resources",
        "A topic, a group, a transactional id, a delegation token, a user (of tokens), or the cluster. The "
        "pattern type says how the name matches: literal is one name, and * is every name; prefixed is every "
        "name that begins with it.",
    ),
    (
        "Decisions",
        "A request is denied if any DENY matches it, then allowed if any ALLOW matches it. Without any ACL "
        "on the resource, allow.everyone.if.no.acl.found decides; else it is denied. Super users skip ACLs. "
        "ALL covers every operation. ALLOW of READ, WRITE, DELETE or ALTER includes DESCRIBE, and "
        "ALTER_CONFIGS includes DESCRIBE_CONFIGS; DENY of one operation denies only that one. "
        "acls add --producer and --consumer grant what a producer and a consumer need.",
    ),
)


def lesson() -> str:
    """Return the text for the end of the help, in paragraphs that keep their lines."""
    paragraphs = ["\n".join(("\b", f"{title}:", *_wrapped(text, "  "))) for title, text in _PARAGRAPHS]
    table = ["\b", "Operations, and the requests that need them:", *_operations()]
    return "\n\n".join([*paragraphs, "\n".join(table)])


def _operations() -> Iterator[str]:
    for resource_type, operations in SUPPORTED_OPERATIONS.items():
        yield f"  {resource_type.name}"
        for operation in operations:
            requests = ", ".join(REQUESTS[resource_type.name, operation.name])
            first, *rest = _wrapped(requests, " " * 22)
            yield f"    {operation.name:17} {first.strip()}"
            yield from rest


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
