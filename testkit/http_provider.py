"""A small HTTP server on loopback, whose answers a test chooses."""

import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from testkit.ports import LOOPBACK


class Provider:
    """Answers each request with `status` and `body`, or as `behave` does; records what it was sent.

    With a `context` it speaks HTTPS.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.status, self.body = 200, b""
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.behave: Any = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                sent = {name.lower(): value for name, value in self.headers.items()}
                provider.requests.append((self.command, self.path, sent, self.rfile.read(size)))
                if provider.behave is not None:
                    provider.behave(self)
                    return
                self.send_response(provider.status)
                for name, value in provider.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(provider.body)))
                self.end_headers()
                self.wfile.write(provider.body)

            do_POST = do_GET  # noqa: N815 (the name is that of the library)

            def handle(self) -> None:
                with suppress(OSError):
                    super().handle()

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._server.daemon_threads = True
        if context is not None:
            # the handshake belongs into the thread of its connection
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'https' if context else 'http'}://{LOOPBACK}:{self._server.server_port}/path?x=1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
