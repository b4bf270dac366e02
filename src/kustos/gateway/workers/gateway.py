"""The gateways of a node with workers: one in each worker, and one in the writer process."""

from itertools import count
from typing import Final

from kustos.gateway.listener.admission import NODE_IS_FULL, AdmittedConnection
from kustos.gateway.listener.gateway import Gateway
from kustos.gateway.listener.plans import GatewayParts, ListenerPlan
from kustos.gateway.listener.port import Port
from kustos.gateway.workers.followers import WorkerFollowers
from kustos.gateway.workers.link import WriterLink


class WriterGateway(Gateway):
    """The admin listeners of the writer process; a failed login counts in every worker."""

    def __init__(
        self, followers: WorkerFollowers, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float
    ) -> None:
        super().__init__(plans, parts, refresh_s)
        self._followers: Final = followers

    def login_failed(self, host: str) -> None:
        """Count a failed login in all processes of the node."""
        super().login_failed(host)
        self._followers.broadcast_failed_login(host)


class WorkerGateway(Gateway):
    """Shares its ports with the other workers, and reports each connection to the writer.

    If the writer counts a connection beyond the node's limit, the worker closes a connection that has not
    authenticated, or the new connection itself. A failed login counts in every process.
    """

    shares_ports = True

    def __init__(
        self, link: WriterLink, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float
    ) -> None:
        super().__init__(plans, parts, refresh_s)
        self._link: Final = link
        self._numbers: Final = count()
        self._number_of: Final[dict[AdmittedConnection, int]] = {}
        self._by_number: Final[dict[int, AdmittedConnection]] = {}

    def admit(self, port: Port, connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return the reason to reject it, None if it is admitted."""
        refusal = super().admit(port, connection, host)
        if refusal is None:
            number = self._number_of[connection] = next(self._numbers)
            self._by_number[number] = connection
            self._link.arrived(number, host)
        return refusal

    def dismiss(self, port: Port, connection: AdmittedConnection) -> None:
        """Count a connection out."""
        super().dismiss(port, connection)
        number = self._number_of.pop(connection, None)
        if number is not None:
            del self._by_number[number]
            self._link.left(number)

    def login_failed(self, host: str) -> None:
        """Count a failed login in all processes of the node."""
        super().login_failed(host)
        self._link.login_failed(host)

    def close_connection(self, number: int, reason: str) -> None:
        """Close a connection beyond the node's limit, or one that has not authenticated."""
        connection = self._by_number.get(number)
        if connection is not None and not (reason == NODE_IS_FULL and self.admission.evict_unauthenticated()):
            self.admission.note_refusal(reason, connection.host)
            connection.close(reason, logged=False)
