"""The options of commands that ask one set of ACLs: they become one parameter, an `AclSource`."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kustos.cli.acl_options import (
    AclsFile,
    AllowEveryone,
    At,
    Form,
    MetadataDirectory,
    NodeConfig,
    SuperUsers,
)
from kustos.cli.options import CommandConfig, IgnoreTornTail, OptionalBootstrapServer

if TYPE_CHECKING:
    from kustos.cli.acl_locations import AclSource

R = TypeVar("R")


def _acl_source(
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    config: NodeConfig = None,
    super_users: SuperUsers = None,
    allow_everyone_if_no_acl_found: AllowEveryone = None,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
) -> "AclSource":
    from kustos.cli.acl_locations import AclSource
    from kustos.cli.broker_settings import SettingOptions

    return AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        at=at,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        ignore_torn_tail=ignore_torn_tail,
        settings=SettingOptions(super_users, allow_everyone_if_no_acl_found, config),
    )


_SOURCE_OPTIONS: Final = tuple(inspect.signature(_acl_source).parameters.values())
_LAST: Final = 2
"""Options that `--help` lists before `--output`: how to read the source."""


def with_acl_source(before: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options that say where ACLs are, in place of its parameter `source: AclSource`.

    `--help` lists them before the parameter `before`.
    """

    def decorated(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def called(**values: Any) -> R:
            chosen = {each.name: values.pop(each.name) for each in _SOURCE_OPTIONS}
            return command(source=_acl_source(**chosen), **values)

        signature = inspect.signature(command)
        shown: list[inspect.Parameter] = []
        for each in signature.parameters.values():
            if each.name == before:
                shown += _SOURCE_OPTIONS[:-_LAST]
            if each.name == "output":
                shown += _SOURCE_OPTIONS[-_LAST:]
            if each.name != "source":
                shown.append(each)
        # what Typer reads
        called.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in shown}
        return called

    return decorated
