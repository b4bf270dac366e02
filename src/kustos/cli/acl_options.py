"""The options that select ACLs: their source, the entries, and the broker settings for deciding by them."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.models import ArgumentInfo

from kustos.cli.failures import usage_error
from kustos.cli.options import AclFormName, CommandConfig, IgnoreTornTail

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource
    from kustos.cli.broker_settings import SettingOptions


SOURCE_FORMS: Final = (
    "a file, `-` for standard input, a metadata directory (DIR or DIR@MOMENT), kafka://HOST:PORT[,...], or "
    "git:REVISION:FILE"
)
"""What SOURCE means in every command."""

Acls = Annotated[
    str | None,
    typer.Option(
        "--acls",
        metavar="SOURCE",
        help=f"Where the ACLs are: {SOURCE_FORMS}.",
        show_default=False,
    ),
]
SourceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        help="The ACLs, in any form of --acls.",
        show_default=False,
    ),
]
Form = Annotated[
    AclFormName | None,
    typer.Option("--form", help="The form of the file. [from its name, else from its text]", hidden=True),
]
_BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="The same as `--acls kafka://HOST:PORT[,...]`.",
        hidden=True,
    ),
]
_MetadataDirectory = Annotated[
    Path | None,
    typer.Option("--metadata-dir", metavar="DIR", help="The same as `--acls DIR`.", hidden=True),
]
_At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME",
        help="The same as `DIR@OFFSET` or `DIR@TIME`.",
        hidden=True,
    ),
]
_NodeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="A broker's properties file, for super.users and allow.everyone.if.no.acl.found if the source "
        "does not have them.",
        show_default=False,
    ),
]
_SuperUsers = Annotated[
    str | None,
    typer.Option(
        "--super-users",
        metavar="LIST",
        help="Decide with these super.users, separated by semicolons, instead of the brokers' list.",
        show_default=False,
    ),
]
_AllowEveryone = Annotated[
    bool | None,
    typer.Option(
        "--allow-everyone-if-no-acl-found/--no-allow-everyone-if-no-acl-found",
        help="The same as the key in the file of --config.",
        show_default=False,
        hidden=True,
    ),
]
PrincipalArgument = Annotated[
    str | None, typer.Argument(metavar="", help="The same as `--principal`.", hidden=True)
]
"""The principal of a command as an argument instead of `--principal`."""

MemberOf = Annotated[
    list[str] | None,
    typer.Option(
        "--member-of",
        metavar="Group:NAME",
        help="A group of the principal, whose ACLs apply to it, too. May be repeated.",
        show_default=False,
    ),
]


To = Annotated[
    AclFormName | None,
    typer.Option("--to", help="The form to write. [from the target's name]"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing target.")]
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
    list[str] | None,
    typer.Option("--allow-principal", metavar="TYPE:NAME", help="Who may, such as User:alice."),
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


def _acl_source(
    acls: Acls = None,
    form: Form = None,
    bootstrap_server: _BootstrapServer = None,
    metadata_dir: _MetadataDirectory = None,
    at: _At = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
) -> "AclSource":
    from kustos.cli.acl_source import AclSource

    return AclSource.stated(
        acls=acls,
        bootstrap_server=bootstrap_server,
        metadata_dir=metadata_dir,
        moment=at,
        form=form,
        command_config=command_config,
        ignore_torn_tail=ignore_torn_tail,
    )


def _settings(
    config: _NodeConfig = None,
    super_users: _SuperUsers = None,
    allow_everyone_if_no_acl_found: _AllowEveryone = None,
) -> "SettingOptions":
    from kustos.cli.broker_settings import SettingOptions

    return SettingOptions(super_users, allow_everyone_if_no_acl_found, config)


R = TypeVar("R")
_ARGUMENT: Final = "acls_argument"


def with_acl_source(
    before: str, *, argument: Any = None, decides: bool = True
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options that say where ACLs are, in place of its parameter `source: AclSource`.

    `--help` lists them before the parameter `before`. `argument` declares a first argument that is another
    way to give `--acls`; a command that is about a set of ACLs has it. `decides`: whether the command needs
    the broker settings. An option that the command declares itself is left to the command.
    """

    def decorated(command: Callable[..., R]) -> Callable[..., R]:
        own = inspect.signature(command)
        of_source, of_settings = _missing(_acl_source, own), _missing(_settings, own) if decides else []
        following = [each for each in own.parameters.values() if _is_argument(each)]

        @wraps(command)
        def called(**values: Any) -> R:
            if argument is not None:
                _take_argument(values, following)
            chosen = {each.name: values.pop(each.name) for each in of_source}
            settings = _settings(**{each.name: values.pop(each.name) for each in of_settings})
            source = _acl_source(**chosen)
            return command(source=replace(source, settings=settings if decides else None), **values)

        shown: list[inspect.Parameter] = []
        if argument is not None:
            shown.append(_parameter(_ARGUMENT, argument))
        for each in own.parameters.values():
            if each.name == before:
                shown += [*of_source, *of_settings]
            if each.name != "source":
                shown.append(each)
        # what Typer reads
        called.__signature__ = own.replace(parameters=_ordered(shown))  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in shown}
        return called

    return decorated


def _missing(options: Callable[..., Any], own: inspect.Signature) -> list[inspect.Parameter]:
    declared = inspect.signature(options).parameters
    return [each for name, each in declared.items() if name not in own.parameters]


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _ordered(shown: list[inspect.Parameter]) -> list[inspect.Parameter]:
    # only keyword parameters may follow one with a default without having one
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(each, ArgumentInfo) for each in getattr(parameter.annotation, "__metadata__", ()))


def _take_argument(values: dict[str, Any], following: list[inspect.Parameter]) -> None:
    """Take the first argument as `--acls`; if there is the option too, it is the next argument."""
    first = values.pop(_ARGUMENT)
    if values["acls"] is None and not _has_alias(values):
        values["acls"] = first
    elif first is not None:
        for each in following:
            if values[each.name] == each.default:
                values[each.name] = first
                return
        raise usage_error(f"`{first}` is more than the command takes with `--acls`, leave it out")


def _has_alias(values: dict[str, Any]) -> bool:
    return values.get("bootstrap_server") is not None or values.get("metadata_dir") is not None


def one_principal(option: str | None, argument: str | None) -> str:
    """Return the principal given by `--principal` or as an argument; raise a usage error unless one was."""
    given = [each.strip() for each in (option, argument) if each is not None]
    if len(given) != 1:
        raise usage_error("name one principal: `--principal User:NAME`")
    return given[0]


def groups_of(principal: str, member_of: list[str] | None) -> tuple[str, ...]:
    """Return the names of the groups in `--member-of`; raise a usage error for another principal, or if the
    principal itself cannot have groups."""
    from kustos.acl import EVERY_PRINCIPAL, KafkaPrincipal

    texts = [each.strip() for each in member_of or ()]
    prefix = KafkaPrincipal.GROUP_PREFIX
    for text in texts:
        if not text.startswith(prefix) or text == prefix:
            raise usage_error(f"`{text}` is not a group, write it as `Group:NAME`")
    if texts and principal == EVERY_PRINCIPAL:
        raise usage_error(f"`{principal}` means everybody, name the principal that has the groups")
    return tuple(dict.fromkeys(text.removeprefix(prefix) for text in texts))
