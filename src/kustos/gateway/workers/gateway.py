"""The gateway of a worker, and the log writer of a node with workers."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from kustos.gateway.listener.admission import NODE_IS_FULL, AdmittedConnection
from kustos.gateway.listener.gateway import Gateway
from kustos.gateway.listener.plans import GatewayParts, ListenerPlan
from kustos.gateway.listener.port import Port
from kustos.gateway.store.writer import MetadataWriter
from kustos.gateway.upstream.in_flight import RequestsInFlightError, nothing_in_flight
from kustos.gateway.workers.pool import WorkerPool
from kustos.gateway.workers.service import Service
from kustos.metadata.store import MetadataStore, StoreRequest


class WorkerGateway(Gateway):
    """Shares its ports with the other workers, and reports each connection to the writer.

    As soon as the writer has counted a connection beyond the node's limit, one that has not authenticated is
    closed, or the connection itself. A failed login counts in every process.
    """

    shares_ports = True

    def __init__(
        self, service: Service, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float
    ) -> None:
        super().__init__(plans, parts, refresh_s, service.login_failed)
        self._service: Final = service
        self._numbers: Final = count()
        self._number_of: Final[dict[AdmittedConnection, int]] = {}
        self._by_number: Final[dict[int, AdmittedConnection]] = {}
        service.on_turn_away = self._turn_away
        service.on_login_failed = self.admission.login_failed

    def admit(self, port: Port, connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, if it is."""
        refusal = super().admit(port, connection, host)
        if refusal is None:
            number = self._number_of[connection] = next(self._numbers)
            self._by_number[number] = connection
            self._service.arrived(number, host)
        return refusal

    def dismiss(self, port: Port, connection: AdmittedConnection) -> None:
        """Count a connection out."""
        super().dismiss(port, connection)
        number = self._number_of.pop(connection, None)
        if number is not None:
            del self._by_number[number]
            self._service.left(number)

    def _turn_away(self, number: int, reason: str) -> None:
        connection = self._by_number.get(number)
        if connection is not None and not (reason == NODE_IS_FULL and self.admission.make_room()):
            self.admission.note_refusal(reason, connection.host)
            connection.close(reason, logged=False)


class WorkerPoolWriter(MetadataWriter):
    """The writer of the log in the writer process: changes that it answers are in force in every worker."""

    def __init__(self, store: MetadataStore, make_pool: Callable[[MetadataStore], WorkerPool]) -> None:
        super().__init__(store)
        self.pool: Final = make_pool(store)
        self.drain: Callable[[], Awaitable[None]] = nothing_in_flight
        """Returns when no broker has a request of a worker that died; raises `RequestsInFlightError`."""
        store.add_publisher(self.pool)

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request; raise what the writer raises."""
        results = await super().submit(request)
        # even if nothing was changed: the present state may still be on its way to a worker
        await self.pool.in_force(self.store.last_offset)
        await self.drain()
        return results

    async def followed(self) -> None:
        """Return when every worker that serves has carried out what it was sent before."""
        with suppress(RequestsInFlightError):  # nothing is revoked
            await self.pool.in_force(self.store.last_offset)
