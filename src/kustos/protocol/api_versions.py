"""The offered APIs and versions: what upstream, the table and the codec have in common (Kafka 4.4.0)."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from kustos.protocol.codes import INVALID_REQUEST, NONE, REBOOTSTRAP_REQUIRED, UNSUPPORTED_VERSION
from kustos.protocol.rows import TABLE
from kustos.protocol.steps import Row
from kustos.wire import (
    MINIMUM_HEADER_SIZE,
    NO_NODE,
    ApiKey,
    MalformedMessageError,
    Message,
    UnsupportedMessageError,
    codec_versions,
    correlation_id_of,
    is_valid_api_versions,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
    with_correlation_id,
    without_correlation_id,
)

Serves: TypeAlias = Callable[[str, int], bool]
"""Whether a listener stands for the node with this id of the cluster with this id (KIP-1242)."""


def serves_any(_cluster_id: str, _node_id: int) -> bool:
    """Let every client pass, as controllers do."""
    return True


LOCAL_APIS: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    }
)
"""APIs that kustos answers itself, even if upstream lacks them."""

PRODUCE_ADVERTISED_MINIMUM: Final = 0
"""Kafka advertises Produce from 0 for librdkafka, though 3 is the lowest it reads (KIP-896)."""


KNOWN_MAX: Final = 1_024
"""Valid ApiVersions frames that are cached, about 300 bytes each. Frames differ by client id and by the
version of the client library."""

KNOWN_MAX_BYTES: Final = 192
"""The largest cached frame: clients choose the names in it, and real names are short."""

# looked up once, since every session requests the versions
_KEY: Final = int(ApiKey.API_VERSIONS)
_KEY_BYTES: Final = _KEY.to_bytes(2, "big")

ZERO_FEATURES_SINCE: Final = 4
"""Earlier clients cannot read a feature whose lowest version is 0, so it is omitted (KIP-584)."""


def offered_versions(upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return API key → (lowest, highest version) that a client may use through the gateway."""
    offered: dict[int, tuple[int, int]] = {}
    for api_key, row in sorted(TABLE.items()):
        versions = common_versions(row, None if api_key in LOCAL_APIS else upstream.get(api_key, (0, -1)))
        if versions is not None:
            offered[api_key] = versions
    return offered


class OfferedApis:
    """The offered versions, computed again only after upstream's versions were replaced.

    `upstream`: the versions of upstream; `features`: its answer to ApiVersions. Both are replaced as a whole
    and never mutated. Use it in one event loop only.
    """

    __slots__ = ("_bodies", "_features", "_of", "_upstream", "_versions")

    def __init__(
        self,
        upstream: Callable[[], Mapping[int, tuple[int, int]]],
        features: Callable[[], Message | None] = lambda: None,
    ) -> None:
        self._upstream: Final = upstream
        self._features: Final = features
        self._of: tuple[Mapping[int, tuple[int, int]], Message | None] | None = None
        self._versions: Mapping[int, tuple[int, int]] = {}
        self._bodies: dict[int, bytes] = {}

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """API key → (lowest, highest version) that clients may use now; the same object until it changes."""
        upstream, features = self._upstream(), self._features()
        if self._of is None or upstream is not self._of[0] or features is not self._of[1]:
            self._of, self._versions, self._bodies = (upstream, features), offered_versions(upstream), {}
        return self._versions

    def body(self, version: int) -> bytes:
        """Return the encoded answer to an ApiVersions of a readable version."""
        versions = self.versions
        body = self._bodies.get(version)
        if body is None:
            message = api_versions_response(version, versions, self._features())
            body = self._bodies[version] = response_codec(ApiKey.API_VERSIONS, version).encode(message)
        return body

    def answer(self, frame: bytes, serves: Serves = serves_any) -> bytes | None:
        """Return the frame that answers a valid ApiVersions to a served node; None for any other frame.

        Most clients begin every session with one. A guard gives the same answer, and also answers invalid
        frames.
        """
        if frame[:2] != _KEY_BYTES or not MINIMUM_HEADER_SIZE <= len(frame) <= KNOWN_MAX_BYTES:
            return None
        found = _valid_request(without_correlation_id(frame))
        lowest, highest = self.versions.get(_KEY, (0, -1))
        if found is None or not lowest <= found.version <= highest or not _is_served(found, serves):
            return None
        version = found.version
        body = self._bodies.get(version) or self.body(version)
        return response_frame(_KEY, response_codec(_KEY, version), correlation_id_of(frame), body)


class _Known(NamedTuple):
    version: int
    cluster_id: str | None
    node_id: int


def _known(version: int, request: Message) -> _Known:
    return _Known(version, request.get("cluster_id"), request.get("node_id", NO_NODE))


def _is_served(known: _Known, serves: Serves) -> bool:
    return known.cluster_id is None or serves(known.cluster_id, known.node_id)


@lru_cache(maxsize=KNOWN_MAX)
def _valid_request(rest: bytes) -> _Known | None:
    """Return the contents of a readable and valid ApiVersions, else None."""
    frame = with_correlation_id(rest)
    try:
        api_key, version, _ = peek_api(frame)
        codec = request_codec(api_key, version)
        body_at = read_request_header(frame, codec.flexible).body_offset
        request = codec.decode(frame, body_at).message
        return _known(version, request) if is_valid_api_versions(request) else None
    except (MalformedMessageError, UnsupportedMessageError):
        return None


def common_versions(row: Row, upstream: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the versions that a row, its codec and upstream share, None if they share no version."""
    known = codec_versions(row.api_key)
    lowest, highest = known if known is not None else (0, -1)
    for limit in (row.versions, upstream):
        if limit is not None:
            lowest, highest = max(lowest, limit[0]), min(highest, limit[1])
    return (lowest, highest) if lowest <= highest else None


def api_versions_response(
    version: int, offered: Mapping[int, tuple[int, int]], features: Message | None
) -> Message:
    """Return the answer to ApiVersions; `features`: upstream's answer, which supplies the features."""
    codec = response_codec(ApiKey.API_VERSIONS, version)
    entry = codec.root.ELEMENTS["api_keys"]
    lowest = {int(ApiKey.PRODUCE): PRODUCE_ADVERTISED_MINIMUM}
    values: dict[str, object] = {
        "error_code": NONE,
        "api_keys": [
            entry(api_key=key, min_version=lowest.get(key, versions[0]), max_version=versions[1])
            for key, versions in offered.items()
        ],
    }
    for name in ("supported_features", "finalized_features"):
        if features is not None and name in codec.root.FIELDS and name in features.FIELDS:
            feature_type = codec.root.ELEMENTS[name]
            values[name] = [
                feature_type(**feature.to_dict())
                for feature in getattr(features, name)
                if version >= ZERO_FEATURES_SINCE or feature.get("min_version") != 0
            ]
    if features is not None and "finalized_features_epoch" in codec.root.FIELDS:
        values["finalized_features_epoch"] = features.finalized_features_epoch
    return codec.root(**values)


def unsupported_version_response() -> Message:
    """Return the answer to an ApiVersions of an unknown version: version 0 with one range (KIP-511)."""
    codec = response_codec(ApiKey.API_VERSIONS, 0)
    versions = codec_versions(ApiKey.API_VERSIONS) or (0, 0)
    entry = codec.root.ELEMENTS["api_keys"]
    key = entry(api_key=int(ApiKey.API_VERSIONS), min_version=versions[0], max_version=versions[1])
    return codec.root(error_code=UNSUPPORTED_VERSION, api_keys=[key])


def refusing_response(version: int, request: Message, serves: Serves) -> Message | None:
    """Return the answer to an ApiVersions that is invalid, or meant for another node; None for any other.

    A client that was misdirected has to bootstrap again (KIP-1242).
    """
    if not is_valid_api_versions(request):
        code = INVALID_REQUEST
    elif not _is_served(_known(version, request), serves):
        code = REBOOTSTRAP_REQUIRED
    else:
        return None
    return response_codec(ApiKey.API_VERSIONS, version).root(error_code=code)
