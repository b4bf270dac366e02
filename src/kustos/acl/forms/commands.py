"""ACLs as commands of Kafka's own tool: what `kafka-acls.sh` removes or adds, one ACL a command.

Every text is one quoted argument of a POSIX shell, joined to its option by `=`, so that no name is parsed as
an option or executed. The tool trims names, breaks on line breaks and takes only operations that the type
supports: other ACLs are refused here.
Source: `AclCommand` of Kafka 4.3.1.
"""

import shlex
from collections.abc import Iterable
from enum import StrEnum, unique
from typing import Final

from kustos.acl.enums import SUPPORTED_OPERATIONS, AclOperation, AclPermissionType, ResourceType
from kustos.acl.forms.values import AclFormatError
from kustos.acl.values import AclBinding

_OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


@unique
class AclAction(StrEnum):
    """What a command does."""

    ADD = "--add"
    REMOVE = "--remove"


def kafka_acls_commands(
    bindings: Iterable[AclBinding],
    action: AclAction,
    *,
    bootstrap_server: str = "$BOOTSTRAP_SERVER",
    command_config: str | None = None,
) -> list[str]:
    """Return one command for each ACL, in order; raise `AclFormatError` for one that the tool cannot take.

    `bootstrap_server` is not quoted if it is the name of a shell variable.
    """
    head = ["kafka-acls.sh", "--bootstrap-server", _server(bootstrap_server)]
    if command_config is not None:
        head += ["--command-config", shlex.quote(command_config)]
    return [" ".join([*head, *_arguments(binding, action)]) for binding in bindings]


def _server(text: str) -> str:
    is_variable = text.startswith("$") and text[1:].replace("_", "").isalnum() and text.isascii()
    return f'"{text}"' if is_variable else shlex.quote(text)


def _arguments(binding: AclBinding, action: AclAction) -> list[str]:
    pattern, entry = binding.pattern, binding.entry
    for text in (pattern.name, entry.principal, entry.host):
        _check(text)
    supported = {AclOperation.ALL, *SUPPORTED_OPERATIONS.get(pattern.resource_type, ())}
    is_known = entry.operation in supported and pattern.pattern_type.is_specific
    if not is_known or entry.permission_type is AclPermissionType.UNKNOWN:
        raise AclFormatError(None, "", f"kafka-acls cannot take `{binding.audit_text()}`, use another form")
    arguments = [action.value]
    if action is AclAction.REMOVE:
        arguments.append("--force")  # else it prompts for each
    if pattern.resource_type is ResourceType.CLUSTER:
        arguments.append("--cluster")
    elif pattern.resource_type in _OPTIONS:
        arguments.append(f"{_OPTIONS[pattern.resource_type]}={shlex.quote(pattern.name)}")
    else:
        raise AclFormatError(
            None, "", f"kafka-acls has no option for resource type `{pattern.resource_type}`"
        )
    arguments.append(f"--resource-pattern-type={pattern.pattern_type.name.lower()}")
    word = "allow" if entry.permission_type is AclPermissionType.ALLOW else "deny"
    arguments += [
        # Kafka's tool reads these in camel case alone
        f"--operation={''.join(part.capitalize() for part in entry.operation.name.split('_'))}",
        f"--{word}-principal={shlex.quote(entry.principal)}",
        f"--{word}-host={shlex.quote(entry.host)}",
    ]
    return arguments


def _check(text: str) -> None:
    if text != text.strip() or not text.isprintable():
        raise AclFormatError(
            None,
            "",
            f"kafka-acls cannot take {text!a}, which begins or ends blank or cannot be printed; "
            "use another form",
        )
