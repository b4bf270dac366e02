"""The names of KIP-11 and of ZooKeeper in Kafka 0.9 to 3.9, as tables and parsers, and their errors.

Releases wrote names in camel case (`ClusterAction`) and read them in any case. KIP-11 and the previews that
vendors shipped wrote upper case (`CLUSTER_ACTION`) and a few names that changed later; kustos reads these but
never writes them. Sources: KIP-11, `SecurityUtils` of Kafka 2.8, a preview's migration of its ACLs.
"""

from typing import Final

from kustos.acl import (
    EVERY_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    AclValueError,
    KafkaPrincipal,
    ResourceType,
)
from kustos.authorizer import AuthorizerError


class LegacyFormatError(AclValueError):
    """A legacy text or JSON document that cannot be read; the message names the place and the value."""


class LegacyRefusalError(AclValueError):
    """An ACL that would have another meaning, or none, after conversion; it is not converted."""


class LegacySettingsError(AuthorizerError):
    """A setting that keeps the legacy authorizer from starting; the message names its key."""


class UnsupportedChangeError(AuthorizerError):
    """A change that a legacy authorizer cannot store; nothing was changed."""


DR_WHO: Final = KafkaPrincipal("User", "Dr. Who?")
"""The principal of an unauthenticated connection in KIP-11; releases use `User:ANONYMOUS`."""

EVERYBODY_OF_KIP_11: Final = "*:*"
"""KIP-11's `User:*`. Kafka releases read it as a principal of type `*` and name `*`, which no client has."""

OPERATIONS_OF_KIP_11: Final = {
    "EDIT": AclOperation.ALTER,
    "REPLICATE": AclOperation.CLUSTER_ACTION,
    "REPLICATION": AclOperation.CLUSTER_ACTION,
}
"""Operations by their names before the first release."""

RESOURCE_TYPES_OF_PREVIEWS: Final = {"CONSUMERGROUP": ResourceType.GROUP}
"""Resource types by their names before the first release, without underscores."""


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


OPERATION_NAMES: Final = {o: _camel(o.name) for o in AclOperation if o > AclOperation.ANY}
PERMISSION_NAMES: Final = {p: _camel(p.name) for p in AclPermissionType if p > AclPermissionType.ANY}
RESOURCE_TYPE_NAMES: Final = {t: t.camel_case for t in ResourceType if t > ResourceType.ANY}

_OPERATIONS: Final = {name.upper(): operation for operation, name in OPERATION_NAMES.items()}
_PERMISSIONS: Final = {name.upper(): permission for permission, name in PERMISSION_NAMES.items()}
_RESOURCE_TYPES: Final = {name.upper(): kind for kind, name in RESOURCE_TYPE_NAMES.items()}


def _squeezed(text: str) -> str:
    return text.upper().replace("_", "")


def operation_of(text: str) -> AclOperation:
    """Return the operation of this name, KIP-11's included; raise `LegacyFormatError`."""
    found = _OPERATIONS.get(_squeezed(text)) or OPERATIONS_OF_KIP_11.get(text.upper())
    if found is None:
        raise LegacyFormatError(
            f"`{text}` is not an operation, use one of {', '.join(OPERATION_NAMES.values())}"
        )
    return found


def permission_type_of(text: str) -> AclPermissionType:
    """Return `Allow` or `Deny`, written in any case; raise `LegacyFormatError`."""
    found = _PERMISSIONS.get(text.upper())
    if found is None:
        raise LegacyFormatError(f"`{text}` is not a permission type, use `Allow` or `Deny`")
    return found


def resource_type_of(text: str) -> ResourceType:
    """Return the resource type of this name, `CONSUMER_GROUP` included; raise `LegacyFormatError`."""
    squeezed = _squeezed(text)
    found = _RESOURCE_TYPES.get(squeezed) or RESOURCE_TYPES_OF_PREVIEWS.get(squeezed)
    if found is None:
        names = ", ".join(RESOURCE_TYPE_NAMES.values())
        raise LegacyFormatError(f"`{text}` is not a resource type, use one of {names}")
    return found


def principal_of(text: str) -> KafkaPrincipal:
    """Return the principal in the form of releases, `Type:name`; raise `LegacyFormatError`."""
    try:
        return KafkaPrincipal.parse(text)
    except AclValueError as error:
        raise LegacyFormatError(str(error)) from None


def kip_11_principal_of(text: str) -> KafkaPrincipal:
    """Return the principal in the form of KIP-11: a bare name is a user, `user:` is `User:`, `*:*` all.

    Raises `LegacyFormatError` for an empty text.
    """
    if not text:
        raise LegacyFormatError("a principal is empty, write it as `User:name`")
    if text in {EVERYBODY_OF_KIP_11, "*"}:
        return KafkaPrincipal.parse(EVERY_PRINCIPAL)
    kind, colon, name = text.partition(":")
    if not colon:
        return KafkaPrincipal(KafkaPrincipal.USER_TYPE, text)
    is_user = kind.casefold() == KafkaPrincipal.USER_TYPE.casefold()
    return KafkaPrincipal(KafkaPrincipal.USER_TYPE if is_user else kind, name)
