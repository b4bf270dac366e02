"""The options for entries, shared by `acls add` and `acls remove`, and for the pattern type."""

from enum import StrEnum
from typing import Annotated

import typer


class PatternTypeName(StrEnum):
    """`--resource-pattern-type` with the values of Kafka's tool."""

    LITERAL = "literal"
    PREFIXED = "prefixed"
    MATCH = "match"
    ANY = "any"


PatternTypeOption = Annotated[
    PatternTypeName,
    typer.Option(
        "--resource-pattern-type",
        help="How names match: literal names, prefixes, all patterns that apply to the name, or any pattern.",
    ),
]
AllowPrincipal = Annotated[
    list[str] | None, typer.Option("--allow-principal", metavar="TYPE:NAME", help="Who may, as User:alice.")
]
DenyPrincipal = Annotated[
    list[str] | None, typer.Option("--deny-principal", metavar="TYPE:NAME", help="Who may not.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="HOST", help="From where they may: an address or a range. [all]"),
]
DenyHost = Annotated[
    list[str] | None,
    typer.Option("--deny-host", metavar="HOST", help="From where they may not. [all]"),
]
Operation = Annotated[
    list[str] | None,
    typer.Option("--operation", metavar="NAME", help="What: Read, Write, Describe, ... [All]"),
]
Producer = Annotated[
    bool, typer.Option("--producer", help="All that a producer needs: Write, Describe, Create on the topic.")
]
Consumer = Annotated[
    bool,
    typer.Option("--consumer", help="All that a consumer needs: Read, Describe on topic; Read on group."),
]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: IdempotentWrite on the cluster too.")
]
