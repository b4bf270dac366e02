"""The users of PLAIN: those that the file names for each listener, replaced as a whole by a reload."""

from collections.abc import Callable, Iterable
from typing import Final

from kustos.auth import JaasEntry, PlainUsers, ReplaceablePlainUsers
from kustos.runtime import Entropy
from kustos.server.settings.listeners import ListenerSettings, SaslListenerSettings

PLAIN: Final = "PLAIN"


def plain_users(sasl: SaslListenerSettings, entropy: Entropy) -> PlainUsers:
    """Return the users of a listener, none if its PLAIN has no login module."""
    module = sasl.jaas.get(PLAIN)
    return PlainUsers.from_jaas_options({} if module is None else module.options, entropy)


class PlainSide:
    """The users of all listeners of a node."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy: Final = entropy
        self._users: Final[dict[str, ReplaceablePlainUsers]] = {}
        self._modules: Final[dict[str, JaasEntry | None]] = {}

    def users(self, listener: str, sasl: SaslListenerSettings) -> ReplaceablePlainUsers:
        """Return the users of a listener, now and after each reload."""
        self._modules[listener] = sasl.jaas.get(PLAIN)
        found = self._users[listener] = ReplaceablePlainUsers(plain_users(sasl, self._entropy))
        return found

    def staged(self, listeners: Iterable[ListenerSettings]) -> Callable[[], None]:
        """Return what puts the users of these settings in force. Who is logged in stays so."""
        made = {
            each.name: (each.sasl.jaas.get(PLAIN), plain_users(each.sasl, self._entropy))
            for each in listeners
            if each.sasl is not None
            and each.name in self._users
            and each.sasl.jaas.get(PLAIN) != self._modules[each.name]
        }

        def commit() -> None:
            for name, (module, users) in made.items():
                self._modules[name], self._users[name].current = module, users

        return commit
