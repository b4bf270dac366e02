"""Contents of an Envelope (KIP-590): a whole request, its principal and its client address.

The principal is encoded as by `DefaultKafkaPrincipalBuilder`: int16 version 0, compact type, compact name, a
boolean (true after a login by delegation token), tagged fields. Like that builder, this module ignores
trailing bytes and unknown tagged fields, and accepts any type. It refuses texts that are not UTF-8 and
over-long lengths, which Java tolerates.
"""

from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.protocol.codes import INVALID_REQUEST
from kustos.protocol.steps import RefuseRequestError
from kustos.wire import ApiKey, ErrorCode, MalformedMessageError, read_uvarint, uvarint

PRINCIPAL_DESERIALIZATION_FAILURE: Final = ErrorCode.principal_deserialization_failure.value

PRINCIPAL_VERSION: Final = b"\x00\x00"
STRING_BYTES_MAX: Final = 0x7FFF
"""The longest string that Kafka's generated readers accept."""

PRINCIPAL_TAGS_MAX: Final = 64
"""Most tagged fields of the principal of an Envelope; Kafka defines no such field yet."""

FORWARDABLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        33,  # AlterConfigs
        37,  # CreatePartitions
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        43,  # ElectLeaders
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        45,  # AlterPartitionReassignments
        46,  # ListPartitionReassignments
        49,  # AlterClientQuotas
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        64,  # UnregisterBroker
        67,  # AllocateProducerIds
        80,  # AddRaftVoter
        81,  # RemoveRaftVoter
        94,  # UnregisterController
    }
)
"""The APIs that Kafka forwards (`ApiKeys.forwardable`); a node answers those with a row."""


def principal_of(data: bytes | None) -> KafkaPrincipal:
    """Return the principal in these bytes; raise `RefuseRequestError` if they hold no valid principal."""
    try:
        return _read_principal(b"" if data is None else data)
    except (MalformedMessageError, UnicodeDecodeError):
        raise RefuseRequestError(PRINCIPAL_DESERIALIZATION_FAILURE) from None


def _read_principal(data: bytes) -> KafkaPrincipal:
    if data[:2] != PRINCIPAL_VERSION:
        raise MalformedMessageError("the principal is of another version")
    principal_type, position = _string(data, 2)
    name, position = _string(data, position)
    if position >= len(data):
        raise MalformedMessageError("the principal ends too early")
    _skip_tags(data, position + 1)
    return KafkaPrincipal(principal_type, name, data[position] != 0)


def _string(data: bytes, position: int) -> tuple[str, int]:
    size, position = read_uvarint(data, position)
    end = position + size - 1
    if not 0 <= size - 1 <= STRING_BYTES_MAX or end > len(data):
        raise MalformedMessageError("a text of the principal is null or too long")
    return data[position:end].decode(), end


def _skip_tags(data: bytes, position: int) -> None:
    count, position = read_uvarint(data, position)
    if count > PRINCIPAL_TAGS_MAX:
        raise MalformedMessageError(f"the principal has more than {PRINCIPAL_TAGS_MAX} tagged fields")
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise MalformedMessageError("a tagged field of the principal is too long")


def principal_bytes(principal: KafkaPrincipal) -> bytes:
    """Return the bytes of a principal, as `principal_of` reads them."""
    texts = b"".join(
        uvarint(len(text) + 1) + text for text in (principal.principal_type.encode(), principal.name.encode())
    )
    return PRINCIPAL_VERSION + texts + bytes((principal.token_authenticated, 0))


def address_bytes_of(data: bytes) -> bytes:
    """Return the raw address of a client; raise `RefuseRequestError` unless it is IPv4 or IPv6."""
    if len(data) not in {4, 16}:
        raise RefuseRequestError(INVALID_REQUEST)
    return data
