"""What the first clients would else wait for, and the whole event loop with them: the making of codecs."""

from typing import Final

from kustos.wire import codec_versions, request_codec, response_codec
from kustos.wire.api_keys import ApiKey

FIRST_APIS: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA)
"""What every client asks before anything else."""

VERSIONS: Final = 2
"""The highest ones: what today's clients speak. Each takes some 10 ms to make."""


def warm_codecs() -> None:
    """Make the codecs of every connection's first requests, before the event loop has anybody to serve."""
    for api_key in FIRST_APIS:
        lowest, highest = codec_versions(api_key) or (0, -1)
        for version in range(highest, max(lowest, highest - VERSIONS + 1) - 1, -1):
            request_codec(api_key, version)
            response_codec(api_key, version)
