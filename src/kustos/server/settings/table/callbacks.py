"""The settings of custom callback handlers and mechanisms, by Kafka's names where it has them."""

from typing import Any, Final

from kustos.client import KAFKAS_LOGINS, SettingsError
from kustos.server.settings.kinds import INT32_MAX, TEXT, Kind, Setting, whole_number
from kustos.server.settings.table.oauth import SIGNED_HANDLER, UNSECURED_HANDLER

HANDLERS_GROUP: Final = "kustos.sasl.callbacks"
MECHANISMS_GROUP: Final = "kustos.sasl.mechanisms"
"""The groups of entry points."""


def _read_login(text: str) -> str:
    if text not in KAFKAS_LOGINS:
        raise SettingsError(
            "a listener has no login of its own to replace, as it reads users and keytabs itself; name a "
            "class for the logins of clients in `sasl.server.callback.handler.class`"
        )
    return text


SERVER_CALLBACK_HANDLER_CLASS: Final[Setting[str]] = Setting(
    "sasl.server.callback.handler.class",
    TEXT,
    None,
    "SASL",
    "Who judges the credentials of a mechanism, given for it as "
    "`listener.name.<listener>.<mechanism>.sasl.server.callback.handler.class`: a Python class as "
    f"`package.module.Class`, or the name of an entry point in the group `{HANDLERS_GROUP}`. `OAUTHBEARER` "
    f"needs one: by Kafka's names `{SIGNED_HANDLER}` checks signatures, and `{UNSECURED_HANDLER}` believes "
    "every token, for tests.",
    per_listener=True,
    per_mechanism=True,
)
MECHANISM_CLASS: Final[Setting[str]] = Setting(
    "kustos.sasl.server.mechanism.class",
    TEXT,
    None,
    "SASL",
    "The Python class of a mechanism of your own in `sasl.enabled.mechanisms`, given for it as "
    "`listener.name.<listener>.<mechanism>.kustos.sasl.server.mechanism.class`. Without it the class is the "
    f"entry point with the name of the mechanism in the group `{MECHANISMS_GROUP}`.",
    per_listener=True,
    per_mechanism=True,
)
CALLBACK_TIMEOUT_MS: Final = Setting(
    "kustos.sasl.callback.timeout.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    5_000,
    "SASL",
    "How long a step of a callback handler or mechanism of your own may take; then the login is refused.",
    per_listener=True,
    per_mechanism=True,
)
LOGIN_CLASS: Final[Setting[str]] = Setting(
    "sasl.login.class",
    Kind("string", "the name of a login of Kafka's, or nothing", _read_login),
    None,
    "SASL",
    "In Kafka the class of a listener's own login. There is none here: any but Kafka's is refused.",
    per_listener=True,
    per_mechanism=True,
)

CALLBACK_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    SERVER_CALLBACK_HANDLER_CLASS,
    MECHANISM_CLASS,
    CALLBACK_TIMEOUT_MS,
    LOGIN_CLASS,
)
