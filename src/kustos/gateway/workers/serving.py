"""What differs in a worker's gateway, and in the writer's writer."""

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from kustos.gateway.client import ClientConnection
from kustos.gateway.listener import Gateway, GatewayParts, ListenerPlan, Port
from kustos.gateway.workers.crew import Crew
from kustos.gateway.workers.service import Service
from kustos.gateway.writer import MetadataWriter
from kustos.metadata.store import MetadataStore, StoreRequest


class WorkerGateway(Gateway):
    """Shares its ports with the other workers, and tells the writer of each connection.

    A connection that is one too many for the node is closed as soon as the writer has counted it.
    """

    shares_ports = True

    def __init__(
        self, service: Service, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float
    ) -> None:
        super().__init__(plans, parts, refresh_s)
        self._service: Final = service
        self._numbers: Final = count()
        self._number_of: Final[dict[ClientConnection, int]] = {}
        self._by_number: Final[dict[int, ClientConnection]] = {}
        service.on_turn_away = self._turn_away

    def admit(self, port: Port, connection: ClientConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, if it is."""
        refusal = super().admit(port, connection, host)
        if refusal is None:
            number = self._number_of[connection] = next(self._numbers)
            self._by_number[number] = connection
            self._service.arrived(number, host)
        return refusal

    def dismiss(self, port: Port, connection: ClientConnection, host: str) -> None:
        """Count a connection out."""
        super().dismiss(port, connection, host)
        number = self._number_of.pop(connection, None)
        if number is not None:
            del self._by_number[number]
            self._service.left(number)

    def _turn_away(self, number: int, reason: str) -> None:
        connection = self._by_number.get(number)
        if connection is not None:
            connection.close(reason)


class CrewWriter(MetadataWriter):
    """The writer of the log in the writer process: what it answers is in force in every worker."""

    def __init__(self, store: MetadataStore, make_crew: Callable[[MetadataStore], Crew]) -> None:
        super().__init__(store)
        self.crew: Final = make_crew(store)
        store.add_publisher(self.crew)

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request; raise what the writer raises."""
        results = await super().submit(request)
        # also where nothing was to be changed: what is so already may be on its way to a worker
        await self.crew.in_force(self.store.last_offset)
        return results
