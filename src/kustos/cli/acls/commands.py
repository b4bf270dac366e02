"""Changes of ACLs as commands to paste into a shell.

A change has a command only if `acls add` or `acls remove` parses it back to exactly the intended ACL.
"""

import shlex
from pathlib import Path
from typing import Final

from kustos.acl import (
    WILDCARD,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kustos.cli.acls.arguments import (
    EntryArguments,
    ResourceArguments,
    bindings_to_add,
    filters_to_remove,
)
from kustos.cli.failures import CommandError

ANY_SERVER: Final = "HOST:PORT"
"""Placeholder for the cluster if the ACLs do not come from one."""

_FLAGS: Final = {
    ResourceType.TOPIC: ("--topic", "topics"),
    ResourceType.GROUP: ("--group", "groups"),
    ResourceType.TRANSACTIONAL_ID: ("--transactional-id", "transactional_ids"),
    ResourceType.DELEGATION_TOKEN: ("--delegation-token", "delegation_tokens"),
    ResourceType.USER: ("--user-principal", "user_principals"),
}

Command = tuple[str, ...]
"""The lines of one command, continued by backslashes."""


def refusal_of(binding: AclBinding) -> str | None:
    """Return why `acls add` would not create this ACL, None if it would."""
    resources, entries = _arguments(binding)
    try:
        created = bindings_to_add(resources, entries)
    except CommandError as error:
        return error.failure.message
    return (
        None if created == [binding] else "a name with blanks around it cannot be given to `kustos acls add`"
    )


def add_command(binding: AclBinding, where: Command) -> Command | None:
    """Return the command that creates an ACL, None if there is none."""
    return None if refusal_of(binding) is not None else _command("add", binding, where)


def remove_command(binding: AclBinding, where: Command) -> Command | None:
    """Return the command that removes an ACL and no other, None if there is none."""
    try:
        filters = filters_to_remove(*_arguments(binding))
    except CommandError:
        return None
    is_it_alone = len(filters) == 1 and filters[0].matches_at_most_one and filters[0].matches(binding)
    return _command("remove", binding, where) if is_it_alone else None


def where_of(bootstrap_server: str | None, command_config: Path | None) -> Command:
    """Return the arguments that name the cluster."""
    if bootstrap_server is None:
        return "--bootstrap-server", ANY_SERVER
    login = () if command_config is None else ("--command-config", str(command_config))
    return "--bootstrap-server", bootstrap_server, *login


def _arguments(binding: AclBinding) -> tuple[ResourceArguments, EntryArguments]:
    pattern, entry = binding.pattern, binding.entry
    named = {} if pattern.resource_type not in _FLAGS else {_FLAGS[pattern.resource_type][1]: (pattern.name,)}
    is_cluster = pattern.resource_type is ResourceType.CLUSTER
    resources = ResourceArguments(cluster=is_cluster, pattern_type=pattern.pattern_type, **named)
    is_allow = entry.permission_type is AclPermissionType.ALLOW
    who, host = (entry.principal,), (entry.host,)
    return resources, EntryArguments(
        allow_principals=who if is_allow else (),
        deny_principals=() if is_allow else who,
        allow_hosts=host if is_allow else (),
        deny_hosts=() if is_allow else host,
        operations=(entry.operation.name,),
    )


def _command(verb: str, binding: AclBinding, where: Command) -> Command | None:
    pattern, entry = binding.pattern, binding.entry
    flag = _FLAGS.get(pattern.resource_type, ("--cluster", ""))[0]
    resource = [flag] if pattern.resource_type is ResourceType.CLUSTER else _option(flag, pattern.name)
    if pattern.pattern_type is PatternType.PREFIXED:
        resource += ["--resource-pattern-type", "prefixed"]
    side = "allow" if entry.permission_type is AclPermissionType.ALLOW else "deny"
    who = _option(f"--{side}-principal", entry.principal)
    # without the option the host is every host
    host = [] if entry.host == WILDCARD and verb == "add" else _option(f"--{side}-host", entry.host)
    words = (
        ["kustos", "acls", verb, *resource],
        [*who, *host, "--operation", entry.operation.name],
        list(where),
    )
    lines = [shlex.join(part) for part in words]
    if not all(line.isprintable() for line in lines):
        return None
    return (f"{lines[0]} \\", f"    {lines[1]} \\", f"    {lines[2]}")


def _option(flag: str, value: str) -> list[str]:
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]
