"""Metrics and health over HTTP, on a listener of their own inside the node's event loop.

`/metrics`: Prometheus' text. `/health`: 200 while the event loop turns. `/ready`: 200 when everything is
ready, else 503; its JSON says what is and what is not. Nobody is asked who they are here.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Final

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kustos.client import NodeAddress
from kustos.gateway.metrics import GatewayMetrics

CONNECTIONS_MAX: Final = 64
"""Scrapers and probes are few; more connections are answered 503."""

KEEP_ALIVE_S: Final = 75
"""Longer than the usual scrape interval of 15 to 60 s, so that a scraper keeps its connection."""

REQUEST_HEAD_MAX_BYTES: Final = 16 * 1024
STOP_TIMEOUT_S: Final = 2
"""How long stopping waits for answers under way."""

Readiness = Callable[[], Mapping[str, bool]]
Details = Callable[[], Mapping[str, object]]


class HttpEndpoint:
    """Serves on `listener` between `start` and `stop`; port 0 takes any free one.

    `readiness` names what must be ready, such as `{"acls": True, "upstream": False}`, at each call;
    `details` are shown beside it and change nothing.
    """

    def __init__(
        self,
        listener: NodeAddress,
        metrics: GatewayMetrics,
        readiness: Readiness,
        details: Details = dict,
    ) -> None:
        self._listener: Final = listener
        self._metrics: Final = metrics
        self._readiness: Final = readiness
        self._details: Final = details
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._loop: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The bound port; the one that was asked for while nothing is bound."""
        return self._listener.port if self._socket is None else int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Bind and serve; raise OSError where the address cannot be had."""
        family = socket.AF_INET6 if ":" in self._listener.host else socket.AF_INET
        self._socket = socket.create_server((self._listener.host, self._listener.port), family=family)
        config = uvicorn.Config(
            self._application(),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_TIMEOUT_S,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=REQUEST_HEAD_MAX_BYTES,
            http="h11",
            ws="none",
        )
        config.load()
        server = self._server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        # the parts of `Server.serve`, without its signal handlers: signals are the node's business
        await server.startup(sockets=[self._socket])
        self._loop = asyncio.get_running_loop().create_task(server.main_loop())

    async def stop(self) -> None:
        """Take no more requests, let those under way end, and free the port; twice is harmless."""
        server, self._server = self._server, None
        if server is None or self._loop is None or self._socket is None:
            return
        server.should_exit = True
        await self._loop
        await server.shutdown(sockets=[self._socket])
        self._socket.close()
        self._socket = None

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/metrics", self._show_metrics, methods=["GET"]),
                Route("/health", _show_health, methods=["GET"]),
                Route("/ready", self._show_readiness, methods=["GET"]),
            ]
        )

    async def metrics_text(self) -> bytes:
        """Return the metrics of this moment, in Prometheus' text format."""
        return self._metrics.text()

    async def readiness(self) -> Mapping[str, bool]:
        """Return what must be ready, and whether it is."""
        return self._readiness()

    async def _show_metrics(self, _: Request) -> Response:
        return Response(await self.metrics_text(), headers={"content-type": CONTENT_TYPE_LATEST})

    async def _show_readiness(self, _: Request) -> Response:
        parts = dict(await self.readiness())
        is_ready = all(parts.values())
        told = {"ready": is_ready, "parts": parts, **self._details()}
        return JSONResponse(told, status_code=200 if is_ready else 503)


async def _show_health(_: Request) -> Response:
    return JSONResponse({"alive": True})
