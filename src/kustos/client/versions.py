"""Selects the version of an API: the highest that the peer, the codecs of kustos and the caller allow."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from kustos import __version__
from kustos.client.errors import UnsupportedVersionError
from kustos.wire import ApiKey, api_name, codec_versions, request_codec, response_codec

ApiVersions = Mapping[int, tuple[int, int]]
"""API key -> (lowest, highest version), as reported by a peer."""

ANSWERS_KEPT_MAX: Final = 64
"""The number of cached ApiVersions answers, some 10 KB each: a broker always gives the same answer."""


@cache
def versions_request(version: int) -> bytes:
    """Return the body of an ApiVersions request of this version."""
    codec = request_codec(ApiKey.API_VERSIONS, version)
    names = {"client_software_name": "kustos", "client_software_version": __version__}
    return codec.encode(codec.root.fit(**names))


@lru_cache(maxsize=ANSWERS_KEPT_MAX)
def read_versions(version: int, body: bytes) -> tuple[int, ApiVersions]:
    """Return the error code and the versions of an answer to ApiVersions; raise `MalformedMessageError`."""
    answer = response_codec(ApiKey.API_VERSIONS, version).decode(body).message
    return answer.error_code, {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}


def choose_version(upstream: ApiVersions, api_key: int, cap: int | None = None, floor: int = 0) -> int:
    """Return the highest version in `upstream`, in the codecs of kustos, and within `floor`..`cap`.

    Raise `UnsupportedVersionError` if there is none.
    """
    ours = codec_versions(api_key)
    theirs = upstream.get(api_key)
    if ours is None or theirs is None:
        who = "kustos does not know" if ours is None else "the cluster does not offer"
        raise UnsupportedVersionError(f"{who} the API `{api_name(api_key)}` (key {api_key})")
    lowest = max(ours[0], theirs[0], floor)
    highest = min(ours[1], theirs[1])
    if cap is not None:
        highest = min(highest, cap)
    if lowest > highest:
        raise UnsupportedVersionError(
            f"no common version of the API `{api_name(api_key)}`: the cluster offers "
            f"{theirs[0]}..{theirs[1]}, needed is one of {max(ours[0], floor)}.."
            f"{ours[1] if cap is None else min(ours[1], cap)}"
        )
    return highest
