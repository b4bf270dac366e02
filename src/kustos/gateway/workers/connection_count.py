"""Counts the connections of the whole node, so that the limits hold however they are spread over workers."""

from collections import Counter
from typing import Final

NODE_IS_FULL: Final = "there are `max.connections` connections"
ADDRESS_IS_FULL: Final = "there are `max.connections.per.ip` connections from this address"


class ConnectionCount:
    """Counts connections, each identified by its worker and its number there."""

    def __init__(self, maximum: int, maximum_per_ip: int) -> None:
        self._maximum = maximum
        self._maximum_per_ip = maximum_per_ip
        self._hosts: Final[dict[object, dict[int, str]]] = {}
        self._by_host: Final[Counter[str]] = Counter()
        self.total = 0

    def change_limits(self, maximum: int, maximum_per_ip: int) -> None:
        """Put other limits in force for newcomers; those counted in stay."""
        self._maximum, self._maximum_per_ip = maximum, maximum_per_ip

    def arrived(self, worker: object, number: int, host: str) -> str | None:
        """Count a connection in; return why it is turned away, if it is. It counts until it has left."""
        refusal = None
        if self.total >= self._maximum:
            refusal = NODE_IS_FULL
        elif self._by_host[host] >= self._maximum_per_ip:
            refusal = ADDRESS_IS_FULL
        self._hosts.setdefault(worker, {})[number] = host
        self._by_host[host] += 1
        self.total += 1
        return refusal

    def left(self, worker: object, number: int) -> None:
        """Count a connection out; an unknown one is ignored."""
        host = self._hosts.get(worker, {}).pop(number, None)
        if host is not None:
            self._uncount(host)

    def gone(self, worker: object) -> None:
        """Count out all connections of a worker."""
        for host in self._hosts.pop(worker, {}).values():
            self._uncount(host)

    def _uncount(self, host: str) -> None:
        self.total -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
