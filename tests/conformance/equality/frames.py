"""Frames at the edge of what can be read, and beyond it: the answer may be a closed connection."""

import struct
from dataclasses import dataclass

from kustos.wire.api_keys import ApiKey, api_name

METADATA, API_VERSIONS = ApiKey.METADATA, ApiKey.API_VERSIONS
ORDERS_V4 = b"\0\0\0\1" + b"\0\6orders" + b"\0"
ORDERS_V9 = b"\2" + b"\7orders" + b"\0" + b"\0\0\0" + b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A request by its parts. `tags` stand between a flexible header and its body."""

    title: str
    api: int
    version: int
    body: bytes = b""
    client_id: bytes | None = b"edge"
    tags: bytes = b""
    answered_in: int | None = None
    """The version of the answer where it is not the request's."""
    difference: str | None = None
    """The name of the difference for which kustos closes the connection where Kafka answers."""

    def bytes_of(self, correlation_id: int) -> bytes:
        """Return the whole frame with its length before it."""
        size = -1 if self.client_id is None else len(self.client_id)
        head = struct.pack(">hhih", self.api, self.version, correlation_id, size)
        content = head + (self.client_id or b"") + self.tags + self.body
        return struct.pack(">i", len(content)) + content


UNKNOWN = (95, 96, 999, 1000, 10_000, 2**15 - 1, -1, -7, -(2**15))
"""Keys of no API of Kafka: of a later one, of a vendor, or of nobody."""

REMOVED = (4, 5, 6, 7)
OF_CONTROLLERS = (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)
"""What brokers and controllers ask of controllers."""

FRAMES = (
    Frame(title="a request as it should be", api=METADATA, version=4, body=ORDERS_V4),
    Frame(title="no client id", api=METADATA, version=4, body=ORDERS_V4, client_id=None),
    Frame(title="an empty client id", api=METADATA, version=4, body=ORDERS_V4, client_id=b""),
    Frame(title="bytes behind the body", api=METADATA, version=4, body=ORDERS_V4 + b"more"),
    Frame(title="a body that ends too early", api=METADATA, version=4, body=ORDERS_V4[:-3]),
    Frame(title="no body", api=METADATA, version=4),
    Frame(
        title="a list of a negative length",
        api=METADATA,
        version=4,
        body=b"\xff\xff\xff\xf0\0",
        difference="Frames that are not in canonical form",
    ),
    Frame(
        title="an API that kustos does not offer: ReadShareGroupState",
        api=84,
        version=0,
        body=b"\1\1\0",
        tags=b"\0",
        difference="APIs that are not offered",
    ),
    Frame(title="a list longer than the frame", api=METADATA, version=4, body=b"\x7f\xff\xff\xff\0"),
    Frame(title="a string of a negative length", api=METADATA, version=4, body=b"\0\0\0\1\xff\xf0\0"),
    Frame(
        title="an unknown tag in the body",
        api=METADATA,
        version=9,
        body=ORDERS_V9[:-1] + b"\1\x63\2hi",
        tags=b"\0",
    ),
    Frame(title="an unknown tag in the header", api=METADATA, version=9, body=ORDERS_V9, tags=b"\1\x63\2hi"),
    Frame(title="half a tag", api=METADATA, version=9, body=ORDERS_V9[:-1] + b"\1\x63\x20hi", tags=b"\0"),
    Frame(title="a version that is not there yet", api=METADATA, version=99, body=ORDERS_V9, tags=b"\0"),
    Frame(title="a negative version", api=METADATA, version=-1, body=ORDERS_V4),
    Frame(title="a version that was removed", api=ApiKey.PRODUCE, version=2, body=b"\0" * 10),
    *[Frame(title=f"an API that is not there: {api}", api=api, version=0) for api in UNKNOWN],
    *[Frame(title=f"an API that was removed: {api}", api=api, version=0, body=bytes(8)) for api in REMOVED],
    *[
        Frame(title=f"an API of controllers: {api_name(api)}", api=api, version=0, body=bytes(32), tags=b"\0")
        for api in OF_CONTROLLERS
    ],
    Frame(title="ApiVersions of a version to come", api=API_VERSIONS, version=77, tags=b"\0", answered_in=0),
    Frame(
        title="ApiVersions with nonsense in it", api=API_VERSIONS, version=3, body=b"\x20nonsense", tags=b"\0"
    ),
)
