"""Which keys of the file a reload puts in force."""

from kustos.authorizer import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from kustos.server.settings.kinds import TakesEffect
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings

PLAIN = "PLAIN"
OF_THE_AUTHORIZER = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG})
"""Only the authorizer in use knows whether it takes new values of these."""


def reloadable_keys(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> frozenset[str]:
    """Return the keys that are set whose new values the node itself puts in force while it runs."""
    own_plain = {
        each.name.lower() for each in listeners if each.sasl is not None and PLAIN in each.sasl.callbacks
    }
    return frozenset(
        key for key in given.texts if key not in OF_THE_AUTHORIZER and _is_reloadable(given, key, own_plain)
    )


def _is_reloadable(given: GivenSettings, key: str, own_plain: set[str]) -> bool:
    """Return whether a reload puts a key in force; `own_plain`: listeners whose operator judges PLAIN."""
    known = given.known_key(key)
    if known is None:
        return False
    match known.setting.takes_effect:
        case TakesEffect.RELOAD:
            return True
        case TakesEffect.RELOAD_FOR_PLAIN:
            concerned = own_plain if known.listener is None else own_plain & {known.listener}
            return known.mechanism == PLAIN.lower() and not concerned
        case TakesEffect.RESTART:
            return False
