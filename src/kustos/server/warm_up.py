"""Prepares what the first clients need: the codecs of their requests, and modules imported late.

Otherwise the first clients, and the whole event loop, would wait for their codecs. And a node without free
file descriptors cannot import a module any more.
"""

from importlib import import_module
from typing import Final

from kustos.wire import ApiKey, codec_versions, request_codec, response_codec

LATE_MODULES: Final = ("concurrent.futures.thread", "encodings.idna", "encodings.punycode")
"""Modules that the standard library imports on first use: for threads, and for host names."""

FIRST_APIS: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA)
"""The first requests of every client."""

VERSIONS: Final = 2
"""The number of highest versions to prepare: those of today's clients. Each takes some 10 ms."""


def load_late_modules() -> None:
    """Import modules that are otherwise imported on first use."""
    for name in LATE_MODULES:
        import_module(name)


def warm_codecs() -> None:
    """Make the codecs of every connection's first requests, before the event loop serves clients."""
    for api_key in FIRST_APIS:
        lowest, highest = codec_versions(api_key) or (0, -1)
        for version in range(highest, max(lowest, highest - VERSIONS + 1) - 1, -1):
            request_codec(api_key, version)
            response_codec(api_key, version)
