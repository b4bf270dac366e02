"""Where clients find the brokers: one port of ours for each broker of theirs."""

from dataclasses import dataclass


class NoPortForBrokerError(Exception):
    """A broker's node id is outside the range of ports; its address must not reach a client."""


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """The ports of one gateway listener.

    Broker N is bound at `first_port` + N, and clients are told `advertised_host` and
    `advertised_first_port` + N.
    """

    advertised_host: str
    first_port: int
    advertised_first_port: int
    port_count: int

    def port_of(self, node_id: int) -> int:
        """Return the port to bind for a broker; raise `NoPortForBrokerError`."""
        return self.first_port + self._checked(node_id)

    def _checked(self, node_id: int) -> int:
        if not 0 <= node_id < self.port_count:
            raise NoPortForBrokerError(
                f"broker `{node_id}` has no port in the range of {self.port_count} from "
                f"{self.first_port}, raise `kustos.gateway.broker.port.count`"
            )
        return node_id

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the address to give to clients in place of an upstream broker's own.

        Raise `NoPortForBrokerError` rather than let upstream's `host` and `port` through.
        """
        del host, port  # where upstream really is, is not for clients to know
        return self.advertised_host, self.advertised_first_port + self._checked(node_id)
