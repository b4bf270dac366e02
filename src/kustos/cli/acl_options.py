"""The options that select ACLs: their source, the entries, and the broker settings for deciding by them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class AclFormName(StrEnum):
    """`--form`: how a file of ACLs is written."""

    KAFKA_ACLS = "kafka-acls"
    JSON = "json"
    JSON_LINES = "json-lines"
    YAML = "yaml"
    CSV = "csv"
    METADATA = "metadata"


AclsFile = Annotated[
    str | None,
    typer.Option(
        "--acls",
        metavar="FILE",
        help="Read ACLs from this file, `-` for standard input.",
        show_default=False,
    ),
]
Form = Annotated[
    AclFormName | None,
    typer.Option("--form", help="The form of the file. [from its name, else from its text]"),
]
MetadataDirectory = Annotated[
    Path | None,
    typer.Option("--metadata-dir", metavar="DIR", help="Read ACLs from this directory of a metadata log."),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="With --metadata-dir, its state at an offset, or at a time as 2026-11-03T09:30 (UTC).",
        show_default=False,
    ),
]
NodeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="A node's properties file, for super.users and allow.everyone.if.no.acl.found if neither the "
        "node nor its log has them.",
        show_default=False,
    ),
]
SuperUsers = Annotated[
    str | None,
    typer.Option(
        "--super-users",
        metavar="LIST",
        help="Decide with these super.users, separated by semicolons, whatever the brokers have.",
        show_default=False,
    ),
]
AllowEveryone = Annotated[
    bool | None,
    typer.Option(
        "--allow-everyone-if-no-acl-found/--no-allow-everyone-if-no-acl-found",
        help="Decide with this allow.everyone.if.no.acl.found, whatever the brokers have.",
        show_default=False,
    ),
]
To = Annotated[
    AclFormName | None,
    typer.Option("--to", help="The form to write. [from the target's name]"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing target.")]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file in any form, `-`, a metadata directory, or a cluster as kafka://HOST:PORT.",
    ),
]
RegionsMax = Annotated[
    int,
    typer.Option("--regions-max", metavar="N", min=1, max=10_000, help="How many regions to show."),
]


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
