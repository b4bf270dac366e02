"""Which version of an API to use: the highest that the peer, our codecs and the caller all allow."""

from collections.abc import Mapping

from kustos.client.errors import UnsupportedVersionError
from kustos.wire import api_name, codec_versions

ApiVersions = Mapping[int, tuple[int, int]]
"""API key -> (lowest, highest version), as reported by a peer."""


def choose_version(upstream: ApiVersions, api_key: int, cap: int | None = None, floor: int = 0) -> int:
    """Return the highest version in `upstream`, in our codecs, and within `floor`..`cap`.

    Raise `UnsupportedVersionError` where there is none.
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
