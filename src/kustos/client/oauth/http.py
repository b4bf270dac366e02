"""One request to an identity provider, with limits, in a thread: the event loop does not wait for it.

Redirects are not followed, because they could send a secret to another host or bypass the allowed URLs. No
proxy is used.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from kustos.client.errors import SettingsError
from kustos.runtime import reason_of
from kustos.settings import INT32_MAX, Setting, whole_number

ALLOWED_URLS_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The setting with the allowed URLs. In Kafka it is a system property of the JVM."""

ALLOWED_FILES_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.files"
"""The setting with the files that make an assertion. In Kafka it is a system property of the JVM."""

TOTAL_TIMEOUT_FACTOR: Final = 3
"""The whole request takes at most this many times both timeouts, even if bytes arrive slowly."""

ANSWER_MAX_BYTES: Final = 1_048_576
"""The largest answer: a set of ten keys has 30,000 bytes, an answer with a token fewer."""

RETRIABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed later."""


class EndpointError(Exception):
    """The endpoint gave no usable answer; the text contains neither secrets nor the answer."""

    def __init__(self, text: str, *, may_pass: bool = True) -> None:
        super().__init__(text)
        self.may_pass = may_pass
        """Whether the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """The URL of a request, and its time-outs. Kafka has no default for either time-out."""

    url: str
    connect_timeout_ms: int = Setting(
        "sasl.login.connect.timeout.ms",
        whole_number(1, INT32_MAX),
        10_000,
        "Upstream",
        "How long a connection to the provider may take.",
        since="0.2.0",
    ).field()
    read_timeout_ms: int = Setting(
        "sasl.login.read.timeout.ms",
        whole_number(1, INT32_MAX),
        10_000,
        "Upstream",
        "How long each part of the provider's answer may take.",
        since="0.2.0",
    ).field()

    @property
    def is_file(self) -> bool:
        """Whether it is a file on this machine."""
        return urlsplit(self.url).scheme.lower() == "file"

    def read_file(self, max_bytes: int = ANSWER_MAX_BYTES) -> bytes:
        """Return the content of the file; raise `EndpointError`. This function blocks."""
        return read_small_file(Path(unquote(urlsplit(self.url).path)), max_bytes)

    def request(
        self,
        context: ssl.SSLContext | None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the body of the answer 200 or 201 to a GET, or to a POST of this body.

        Raise `EndpointError`. This function blocks for a limited time.
        """
        place = urlsplit(self.url)
        exchange = _Exchange(self, _connection(place, self, context))
        sent = {"Accept": "application/json", "Cache-Control": "no-cache", **(headers or {})}
        target = (place.path or "/") + (f"?{place.query}" if place.query else "")
        try:
            return exchange.run("GET" if body is None else "POST", target, body, sent)
        except ssl.SSLCertVerificationError as error:
            raise EndpointError(f"`{self.url}` has no trusted certificate: {error.verify_message}") from None
        except (OSError, http.client.HTTPException) as error:
            raise EndpointError(f"`{self.url}` did not answer: {_reason(error)}") from None


def read_small_file(path: Path, max_bytes: int = ANSWER_MAX_BYTES) -> bytes:
    """Return the content of a file; raise `EndpointError`. This function blocks."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise EndpointError(f"cannot read `{path}`: {reason_of(error)}") from None
    if len(data) > max_bytes:
        raise EndpointError(f"`{path}` is larger than {max_bytes} bytes")
    return data


def _connection(
    place: SplitResult, endpoint: ProviderEndpoint, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    timeout_s = endpoint.connect_timeout_ms / 1000
    host = place.hostname or ""
    if place.scheme.lower() == "https":
        return http.client.HTTPSConnection(
            host, place.port, timeout=timeout_s, context=context or ssl.create_default_context()
        )
    return http.client.HTTPConnection(host, place.port, timeout=timeout_s)


@dataclass(slots=True)
class _Exchange:
    """A request on its own connection, which a timer may close."""

    endpoint: ProviderEndpoint
    connection: http.client.HTTPConnection
    wire: socket.socket | None = None
    took_too_long: bool = False

    def run(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        endpoint = self.endpoint
        total_ms = TOTAL_TIMEOUT_FACTOR * (endpoint.connect_timeout_ms + endpoint.read_timeout_ms)
        timer = threading.Timer(total_ms / 1000, self._end)
        timer.daemon = True
        try:
            self.connection.connect()
            self.wire = self.connection.sock
            self.wire.settimeout(endpoint.read_timeout_ms / 1000)
            timer.start()
            self.connection.request(method, target, body, dict(headers))
            answer = self.connection.getresponse()
            data = answer.read(ANSWER_MAX_BYTES + 1)
        except Exception:
            # when the timer closes the connection, it looks as if the peer closed or reset it
            if not self.took_too_long:
                raise
        finally:
            timer.cancel()
            self.connection.close()
        if self.took_too_long:
            raise EndpointError(f"`{endpoint.url}` took longer than {total_ms} ms to answer")
        if answer.status not in {200, 201}:
            raise EndpointError(
                f"`{endpoint.url}` answered with HTTP status {answer.status}",
                may_pass=answer.status in RETRIABLE,
            )
        if len(data) > ANSWER_MAX_BYTES:
            raise EndpointError(f"`{endpoint.url}` answered with more than {ANSWER_MAX_BYTES} bytes")
        return data

    def _end(self) -> None:
        self.took_too_long = True
        if self.wire is not None:
            with suppress(OSError):
                self.wire.shutdown(socket.SHUT_RDWR)


def checked_url(text: str, key: str, allowed: frozenset[str]) -> str:
    """Return the URL of a setting; raise `SettingsError` if it is not a URL or not allowed."""
    url = text.strip()
    if not url.isascii() or not url.isprintable() or " " in url:
        raise SettingsError(f"`{key}` is not a URL: it has characters that must be encoded")
    try:
        place = urlsplit(url)
        usable = place.port is None or place.port > 0
    except ValueError:
        raise SettingsError(f"`{key}` is not a URL") from None
    scheme = place.scheme.lower()
    if scheme not in {"http", "https", "file"} or not usable:
        raise SettingsError(f"`{key}` is `{url}`, use a URL that begins with `https`, `http` or `file`")
    if place.username is not None or place.password is not None:
        raise SettingsError(f"`{key}` has a user name or password in its URL, leave them out")
    if (scheme == "file") == bool(place.hostname):
        raise SettingsError(f"`{key}` is `{url}`, write `https://host/path` or `file:///path`")
    if url not in allowed:
        raise SettingsError(f"`{key}` is `{url}`, which `{ALLOWED_URLS_KEY}` does not allow; add it there")
    return url


def checked_file(text: str, key: str, allowed: frozenset[str]) -> Path:
    """Return the absolute path of a setting; raise `SettingsError` if it is not allowed."""
    path = Path(text).absolute()
    if path not in map(Path, allowed):
        raise SettingsError(f"`{key}` is `{path}`, which `{ALLOWED_FILES_KEY}` does not allow; add it there")
    return path


def allowed_items(text: str) -> frozenset[str]:
    """Return the URLs or files of a comma-separated list."""
    return frozenset(item.strip() for item in text.split(",") if item.strip())


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return reason_of(error)
    # the text of an HTTP error may contain bytes of the peer
    return "what it sent is not HTTP"
