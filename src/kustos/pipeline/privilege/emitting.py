"""Recommended ACLs as texts: YAML that `kustos acls` reads, and commands of Kafka's own tool."""

from collections.abc import Iterable

from kustos.acl.forms import AclForm, write_acls
from kustos.pipeline.privilege.values import RecommendedAcl
from kustos.pipeline.review.commands import AclAction, kafka_acls_commands

_HEAD = "acls:\n"


def recommended_yaml(acls: Iterable[RecommendedAcl]) -> str:
    """Return a YAML text of the ACLs, each below a comment with its reason.

    `read_acls` reads it, and so does every command that takes ACLs. Raises `AclFormatError` for an ACL that
    could not be read back.
    """
    parts: list[str] = []
    for acl in acls:
        # reasons are sentences of our own with numbers in them: no recorded name gets into a comment
        item = write_acls([acl.binding], AclForm.YAML).removeprefix(_HEAD)
        parts.append(f"  # {acl.reason}\n{item}")
    return _HEAD + "".join(parts) if parts else "acls: []\n"


def recommended_commands(
    acls: Iterable[RecommendedAcl],
    *,
    bootstrap_server: str = "$BOOTSTRAP_SERVER",
    command_config: str | None = None,
) -> list[str]:
    """Return a `kafka-acls.sh --add` command for each ACL, quoted for a POSIX shell.

    Raises `ReviewError` for a name that the tool cannot take; the YAML can hold it.
    """
    bindings = [acl.binding for acl in acls]
    return kafka_acls_commands(
        bindings, AclAction.ADD, bootstrap_server=bootstrap_server, command_config=command_config
    )
