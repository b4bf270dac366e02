"""The node as a client of brokers and of controllers: the keys of Kafka's clients behind a prefix."""

from kustos.auth import JaasError, parse_jaas_config
from kustos.client import ClientSettings, SettingsError
from kustos.extras import ExtraMissingError
from kustos.server.settings.listeners import login_module_policy
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table.clients import ClientTable
from kustos.server.settings.table.oauth import ALLOWED_URLS


def client_settings(
    given: GivenSettings, table: ClientTable, servers: str, servers_key: str
) -> ClientSettings:
    """Return the settings of connections to these servers; raise `SettingsError` naming the wrong key."""
    prefix = table.prefix
    properties = {
        name.removeprefix(prefix): value for name, value in given.texts.items() if name.startswith(prefix)
    }
    properties[ALLOWED_URLS.name] = given.texts.get(ALLOWED_URLS.name, "")
    protocol = given.require(table.protocol)
    if protocol.startswith("SASL"):
        for setting in (table.mechanism, table.jaas):
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
    except ValueError:
        # Python refuses to parse numbers of thousands of digits
        raise SettingsError(f"`{servers_key}` has an invalid port") from None
    return client
