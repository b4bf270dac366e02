"""Puts each listener together from the settings that speak of it."""

from collections.abc import Mapping

from kustos.auth.errors import JaasError
from kustos.auth.jaas import JaasEntry, single_jaas_entry
from kustos.auth.settings import SaslServerSettings
from kustos.client.addresses import NodeAddress
from kustos.client.errors import SettingsError
from kustos.server import setting_table as table
from kustos.server.given import LISTENER_PREFIX, GivenSettings, keys_of, known_key, listener_key
from kustos.server.listener_settings import (
    WILDCARD_HOSTS,
    ListenerSettings,
    SaslListenerSettings,
    parse_listeners,
    parse_protocol_map,
    protocol_of,
)

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""Mechanism that is served -> the class that its `sasl.jaas.config` names in Kafka."""

SERVED_MECHANISMS = tuple(LOGIN_MODULES)


def listener_settings(given: GivenSettings) -> tuple[ListenerSettings, ...]:
    """Return the listeners, in the order of the file; raise `SettingsError`, warn of what has no effect."""
    bound = parse_listeners(given.require(table.LISTENERS), table.LISTENERS.name)
    advertised_text = given.get(table.ADVERTISED_LISTENERS)
    advertised = parse_listeners(advertised_text, table.ADVERTISED_LISTENERS.name) if advertised_text else {}
    for name in advertised.keys() - bound.keys():
        raise SettingsError(
            f"`{table.ADVERTISED_LISTENERS.name}` has `{name}`, which is not among "
            f"`{table.LISTENERS.name}`; name one of {', '.join(bound)}"
        )
    protocols = parse_protocol_map(
        given.get(table.SECURITY_PROTOCOL_MAP) or "", table.SECURITY_PROTOCOL_MAP.name
    )
    _warn(given, bound)
    controllers = {name.upper() for name in given.require(table.CONTROLLER_LISTENER_NAMES)}
    if controllers >= bound.keys():
        raise SettingsError(
            f"`{table.CONTROLLER_LISTENER_NAMES.name}` names every listener of `{table.LISTENERS.name}`, add "
            "one for clients"
        )
    return tuple(
        _listener(
            given,
            name,
            address,
            advertised.get(name),
            protocol_of(name, protocols),
            is_controller=name in controllers,
        )
        for name, address in bound.items()
    )


def _listener(
    given: GivenSettings,
    name: str,
    bind: NodeAddress,
    advertised: NodeAddress | None,
    protocol: str,
    *,
    is_controller: bool,
) -> ListenerSettings:
    advertised = advertised or bind
    if advertised.host in WILDCARD_HOSTS:
        raise SettingsError(
            f"clients of listener `{name}` cannot be told to connect to `{advertised.host}`, set "
            f"`{table.ADVERTISED_LISTENERS.name}={name}://<host>:{advertised.port}`"
        )
    start = (
        given.get(table.BROKER_PORT_START, name)
        or given.get(table.GATEWAY_BROKER_PORT_START)
        or bind.port + 1
    )
    return ListenerSettings(
        name=name,
        security_protocol=protocol,
        bind=bind,
        advertised=advertised,
        broker_port_start=start,
        # what forwards the listener's port under another number forwards the brokers' ports alike
        advertised_broker_port_start=start + advertised.port - bind.port,
        broker_port_count=0 if is_controller else given.require(table.BROKER_PORT_COUNT),
        is_controller=is_controller,
        sasl=_sasl(given, name) if protocol.startswith("SASL") else None,
    )


def _sasl(given: GivenSettings, listener: str) -> SaslListenerSettings:
    mechanisms = given.require(table.ENABLED_MECHANISMS, listener)
    key = listener_key(table.ENABLED_MECHANISMS, listener)
    if not mechanisms:
        raise SettingsError(f"listener `{listener}` has no SASL mechanism, set `{key}`")
    for mechanism in mechanisms:
        if mechanism not in SERVED_MECHANISMS:
            which = " (Kafka's default)" if mechanism == "GSSAPI" else ""
            raise SettingsError(
                f"listener `{listener}` offers `{mechanism}`{which}, which is not served yet; set `{key}` to "
                f"some of {', '.join(SERVED_MECHANISMS)}"
            )
    server = SaslServerSettings(
        {mechanism: given.require(table.MAX_REAUTH_MS, listener, mechanism) for mechanism in mechanisms},
        given.require(table.FAILED_AUTHENTICATION_DELAY_MS),
        given.require(table.MAX_RECEIVE_SIZE, listener),
    )
    return SaslListenerSettings(mechanisms, server, _jaas(given, listener, mechanisms))


def _jaas(given: GivenSettings, listener: str, mechanisms: tuple[str, ...]) -> dict[str, JaasEntry]:
    """Return the login module of each mechanism that has one; PLAIN must."""
    found: dict[str, JaasEntry] = {}
    for mechanism in mechanisms:
        keys = list(keys_of(table.JAAS_CONFIG, listener, mechanism))
        # without a mechanism Kafka ignores the key, so nobody gets the users of another mechanism
        key = next((key for key in keys if key in given.values and _names_mechanism(key)), None)
        if key is None:
            if mechanism == "PLAIN":
                raise SettingsError(
                    f"listener `{listener}` offers `PLAIN` but has no users: set `{keys[0]}` to "
                    f'`{LOGIN_MODULES[mechanism]} required user_<name>="<password>";`'
                )
            continue
        try:
            entry = single_jaas_entry(given.texts[key])
        except JaasError as error:
            raise SettingsError(f"`{key}`: {error}") from None
        if entry.login_module != LOGIN_MODULES[mechanism]:
            raise SettingsError(
                f"`{key}` does not begin with the login module of `{mechanism}`, `{LOGIN_MODULES[mechanism]}`"
            )
        found[mechanism] = entry
    return found


def _names_mechanism(key: str) -> bool:
    known = known_key(key)
    return known is not None and known.mechanism is not None


def _warn(given: GivenSettings, bound: Mapping[str, NodeAddress]) -> None:
    names = {name.lower() for name in bound}
    for key in given.values:
        known = known_key(key)
        if known is None:
            continue
        if known.listener is not None and known.listener not in names:
            given.warnings.append(
                f"`{key}` has no effect: `{table.LISTENERS.name}` has no `{known.listener}` "
                f"(after `{LISTENER_PREFIX}` the name stands in small letters)"
            )
        if known.setting is table.JAAS_CONFIG and known.mechanism is None:
            given.warnings.append(
                f"`{key}` has no effect, as in Kafka: put the mechanism in small letters before "
                f"`{table.JAAS_CONFIG.name}`"
            )
