"""The node's own connections to brokers and controllers: the keys of Kafka's clients with a prefix."""

from typing import Any, Final

from kustos.auth import JaasError, parse_jaas_config
from kustos.client import LOGIN_GROUPS, LOGIN_MODULES, ClientSettings, ConnectionLimits, SettingsError
from kustos.client.oauth import ALLOWED_FILES_KEY, ALLOWED_URLS_KEY, LOGIN_HANDLER, TOKEN_URL_KEY
from kustos.extras import ExtraMissingError
from kustos.server.settings.jaas import login_module_policy
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.tls import client_tls_declarations
from kustos.settings import (
    TEXT,
    Kind,
    Section,
    Setting,
    one_of,
    settings_of,
)

_LOGIN: Final[tuple[tuple[str, Kind[Any], str], ...]] = (
    (
        TOKEN_URL_KEY,
        TEXT,
        "With `OAUTHBEARER`: where the node gets its own token: from a provider by client credentials, or "
        f"from a `file` URL. It must stand in `{ALLOWED_URLS_KEY}`, too.",
    ),
    ("sasl.oauthbearer.client.credentials.client.id", TEXT, "The client id at the provider."),
    ("sasl.oauthbearer.client.credentials.client.secret", TEXT, "Its secret at the provider."),
    (
        "sasl.oauthbearer.jwt.retriever.class",
        TEXT,
        "How the token is got, by a class of Kafka in `org.apache.kafka.common.security.oauthbearer`: "
        "`DefaultJwtRetriever`, `ClientCredentialsJwtRetriever`, `FileJwtRetriever` or "
        "`JwtBearerJwtRetriever`, with which the JWT of `sasl.oauthbearer.assertion` is the grant.",
    ),
    (
        "sasl.oauthbearer.assertion.file",
        TEXT,
        "A file with a JWT that tells the provider who the node is, in place of a secret.",
    ),
    (
        "sasl.oauthbearer.assertion.claim.iss",
        TEXT,
        "The claim `iss` of such a JWT that the node signs itself; set, it takes the place of the secret.",
    ),
    ("sasl.oauthbearer.assertion.claim.sub", TEXT, "Its claim `sub`."),
    ("sasl.oauthbearer.assertion.claim.aud", TEXT, "Its claim `aud`."),
    ("sasl.oauthbearer.assertion.private.key.file", TEXT, "The private key that signs it, in PEM."),
    ("sasl.oauthbearer.assertion.private.key.passphrase", TEXT, "What opens that key, if it is encrypted."),
    (
        "sasl.oauthbearer.assertion.template.file",
        TEXT,
        "A JSON file whose members `header` and `payload` have more of both.",
    ),
    ("sasl.oauthbearer.scope", TEXT, "The requested scope. Without it none is requested."),
    (
        "sasl.login.callback.handler.class",
        TEXT,
        "A Python class that gets the credentials, as `package.module.Class` or an entry point in the group "
        f"`kustos.sasl.login.callbacks`; `{LOGIN_HANDLER}` is what happens without it.",
    ),
    ("sasl.login.class", TEXT, "As in Kafka; there is no login to replace here, so only its own."),
    (
        "sasl.kerberos.service.name",
        TEXT,
        "With `GSSAPI`: the first part of the principals that are connected to, mostly `kafka`; needed "
        "unless the login module has `serviceName`.",
    ),
)
"""Key, kind and meaning of text settings; the client parses them and has their defaults."""

_SECRETS: Final = ("secret", "passphrase")
"""The endings of names of secrets."""


def client_declarations(prefix: str, section: Section, protocol_doc: str) -> tuple[Setting[Any], ...]:
    """Return the settings of connections to one cluster: the keys of Kafka's clients after a prefix."""
    needed = "needed for `SASL_PLAINTEXT` and `SASL_SSL`."
    return (
        Setting(
            prefix + "security.protocol",
            one_of("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"),
            "PLAINTEXT",
            section,
            protocol_doc,
        ),
        Setting(
            prefix + "sasl.mechanism",
            one_of(*LOGIN_MODULES),
            None,
            section,
            f"The SASL mechanism for logging in; {needed}",
        ),
        Setting(
            prefix + "sasl.jaas.config",
            TEXT,
            None,
            section,
            "The login module: with user name and password, for `GSSAPI` with a keytab or a ticket cache, or "
            f"for `OAUTHBEARER`; {needed}",
            secret=True,
        ),
        *client_tls_declarations(prefix, section),
        *(
            Setting(prefix + name, kind, None, section, doc, secret=name.endswith(_SECRETS), since="0.2.0")
            for name, kind, doc in _LOGIN
        ),
        *(each.behind(prefix, section) for group in LOGIN_GROUPS for each in settings_of(group).values()),
    )


UPSTREAM_PREFIX: Final = "kustos.upstream."
BOOTSTRAP_SERVERS: Final[Setting[str]] = Setting(
    "kustos.upstream.bootstrap.servers",
    TEXT,
    None,
    "Upstream",
    "Brokers of the upstream cluster: `host:port`, separated by commas.",
    required=True,
)
UPSTREAM: Final = client_declarations(UPSTREAM_PREFIX, "Upstream", "The security protocol of its brokers.")
UPSTREAM_IDENTITY: Final = Setting(
    "kustos.upstream.identity",
    one_of("service", "token"),
    "service",
    "Upstream",
    "As whom the connections of clients log in to brokers: `service`, as the principal of kustos; `token`, "
    "as the client itself, with a delegation token that kustos creates for it.",
    since="0.2.0",
)
UPSTREAM_TOKEN_MECHANISM: Final = Setting(
    "kustos.upstream.token.sasl.mechanism",
    one_of("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "SCRAM-SHA-512",
    "Upstream",
    "The SASL mechanism for these tokens.",
    since="0.2.0",
)
UPSTREAM_TIMEOUT_MS: Final[Setting[int]] = settings_of(ConnectionLimits)["request_timeout_ms"].behind(
    UPSTREAM_PREFIX, "Upstream"
)


def client_settings(given: GivenSettings, prefix: str, servers: str) -> ClientSettings:
    """Return the settings of connections to these servers; raise `SettingsError` naming the wrong key.

    `prefix`: the prefix of `client_declarations`.
    """
    properties = {
        name.removeprefix(prefix): value for name, value in given.texts.items() if name.startswith(prefix)
    }
    for key in (ALLOWED_URLS_KEY, ALLOWED_FILES_KEY):
        properties[key] = given.texts.get(key, "")
    protocol: str = given.require(given.table[prefix + "security.protocol"])
    if protocol.startswith("SASL"):
        has_handler = bool(properties.get("sasl.login.callback.handler.class"))
        for name in ("sasl.mechanism", *(() if has_handler else ("sasl.jaas.config",))):
            if name not in properties:
                raise SettingsError(
                    f"`{prefix}{name}` is not set, `{prefix}security.protocol={protocol}` needs it"
                )
    try:
        if "sasl.jaas.config" in properties:
            parse_jaas_config(properties["sasl.jaas.config"], login_module_policy(given))
        client = ClientSettings.from_properties(servers, properties)
        if client.tls is not None:
            # report unusable stores now and not at the first connection
            client.tls.context()
        if client.sasl is not None and client.sasl.oauth is not None:
            client.sasl.oauth.require_usable()
    except JaasError as error:
        raise SettingsError(f"`{prefix}sasl.jaas.config`: {error}") from None
    except ExtraMissingError as error:
        raise SettingsError(f"`{prefix}sasl.mechanism`: {error}") from None
    except SettingsError as error:
        raise SettingsError(f"in the settings that begin with `{prefix}`: {error}") from None
    return client


def upstream_settings(given: GivenSettings) -> ClientSettings:
    """Return the settings of connections to brokers as the service principal; raise `SettingsError`."""
    return client_settings(given, UPSTREAM_PREFIX, given.require(BOOTSTRAP_SERVERS))


def token_mechanism(
    given: GivenSettings, upstream: ClientSettings, listeners: tuple[ListenerSettings, ...]
) -> str | None:
    """Return the mechanism of links that log in as their clients, None if links do not; raise
    `SettingsError`."""
    key = UPSTREAM_IDENTITY.name
    if given.require(UPSTREAM_IDENTITY) == "service":
        return None
    if upstream.sasl is None:
        raise SettingsError(
            f"`{key}` is `token`, but brokers take delegation tokens on SASL listeners only: set "
            f"`kustos.upstream.security.protocol` to `SASL_SSL` or `SASL_PLAINTEXT`"
        )
    if upstream.sasl.token_authenticated:
        raise SettingsError(
            f"`{key}` is `token`, but kustos itself logs in with a token, which may not create others: "
            f"leave `tokenauth` out of `kustos.upstream.sasl.jaas.config`"
        )
    for listener in listeners:
        if listener.sasl is None and not listener.is_controller:
            given.warnings.append(
                f"clients of the listener `{listener.name}` that show no certificate are refused: "
                f"`{key}` is `token`, and these clients have no name for a token"
            )
    return given.require(UPSTREAM_TOKEN_MECHANISM)
