"""The node as a client of brokers and of controllers: the keys of Kafka's clients behind a prefix."""

from kustos.auth import JaasError, parse_jaas_config
from kustos.client import ClientSettings, SettingsError
from kustos.extras import ExtraMissingError
from kustos.server.settings.listeners import ListenerSettings, login_module_policy
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table import node as node_table
from kustos.server.settings.table.clients import ClientTable
from kustos.server.settings.table.oauth import ALLOWED_URLS


def client_settings(given: GivenSettings, table: ClientTable, servers: str) -> ClientSettings:
    """Return the settings of connections to these servers; raise `SettingsError` naming the wrong key."""
    prefix = table.prefix
    properties = {
        name.removeprefix(prefix): value for name, value in given.texts.items() if name.startswith(prefix)
    }
    properties[ALLOWED_URLS.name] = given.texts.get(ALLOWED_URLS.name, "")
    protocol = given.require(table.protocol)
    if protocol.startswith("SASL"):
        has_handler = bool(properties.get("sasl.login.callback.handler.class"))
        for setting in (table.mechanism, *(() if has_handler else (table.jaas,))):
            if not given.has(setting):
                raise SettingsError(
                    f"`{setting.name}` is not set, `{table.protocol.name}={protocol}` needs it"
                )
    try:
        if given.has(table.jaas):
            parse_jaas_config(properties["sasl.jaas.config"], login_module_policy(given))
        client = ClientSettings.from_properties(servers, properties)
        if client.tls is not None:
            # unusable stores show now rather than at the first connection
            client.tls.context()
    except JaasError as error:
        raise SettingsError(f"`{table.jaas.name}`: {error}") from None
    except ExtraMissingError as error:
        raise SettingsError(f"`{table.mechanism.name}`: {error}") from None
    except SettingsError as error:
        raise SettingsError(f"in the settings that begin with `{prefix}`: {error}") from None
    return client


def upstream_settings(given: GivenSettings) -> ClientSettings:
    """Return the settings of connections to brokers as the service principal; raise `SettingsError`."""
    servers: str = given.require(node_table.BOOTSTRAP_SERVERS)
    return client_settings(given, node_table.UPSTREAM, servers)


def token_mechanism(
    given: GivenSettings, upstream: ClientSettings, listeners: tuple[ListenerSettings, ...]
) -> str | None:
    """Return by which mechanism links log in as their clients, None if they do not; raise `SettingsError`."""
    key = node_table.UPSTREAM_IDENTITY.name
    if given.require(node_table.UPSTREAM_IDENTITY) == "service":
        return None
    if upstream.sasl is None:
        raise SettingsError(
            f"`{key}` is `token`, but brokers take delegation tokens on SASL listeners only: set "
            f"`{node_table.UPSTREAM.protocol.name}` to `SASL_SSL` or `SASL_PLAINTEXT`"
        )
    if upstream.sasl.token_authenticated:
        raise SettingsError(
            f"`{key}` is `token`, but kustos itself logs in with a token, which may not create others: "
            f"leave `tokenauth` out of `{node_table.UPSTREAM.jaas.name}`"
        )
    for listener in listeners:
        if listener.sasl is None and not listener.is_controller:
            given.warnings.append(
                f"clients of the listener `{listener.name}` that show no certificate are turned away: "
                f"`{key}` is `token`, and there is nobody that brokers could see"
            )
    mechanism: str = given.require(node_table.UPSTREAM_TOKEN_MECHANISM)
    return mechanism
