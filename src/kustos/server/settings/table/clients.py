"""The settings of the node as a client, of brokers and of controllers, by the keys of Kafka's clients."""

from dataclasses import dataclass
from typing import Any, Final

from kustos.client.oauth import ALLOWED_URLS_KEY, LOGIN_HANDLER, TOKEN_URL_KEY
from kustos.server.settings.kinds import (
    BOOLEAN,
    INT32_MAX,
    INT64_MAX,
    TEXT,
    Kind,
    Section,
    Setting,
    one_of,
    whole_number,
)
from kustos.server.settings.table.tls import client_tls_settings

_MILLISECONDS: Final[Kind[int]] = whole_number(1, INT32_MAX, "milliseconds")
_FROM_ZERO: Final[Kind[int]] = whole_number(0, INT32_MAX, "milliseconds")

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
    ("sasl.oauthbearer.assertion.claim.exp.seconds", whole_number(0, 86_400), "How long it is valid: 300."),
    (
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        whole_number(0, 3600),
        "How long before its time it is valid, for the provider's clock: 60.",
    ),
    (
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        "Whether it has a random `jti`. By default not.",
    ),
    ("sasl.oauthbearer.assertion.algorithm", one_of("RS256", "ES256"), "How it is signed: `RS256`."),
    ("sasl.oauthbearer.assertion.private.key.file", TEXT, "The private key that signs it, in PEM."),
    ("sasl.oauthbearer.assertion.private.key.passphrase", TEXT, "What opens that key, if it is encrypted."),
    (
        "sasl.oauthbearer.assertion.template.file",
        TEXT,
        "A JSON file whose members `header` and `payload` have more of both.",
    ),
    ("sasl.oauthbearer.scope", TEXT, "The requested scope. Without it none is requested."),
    (
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        "Whether id and secret are encoded for URLs in the header, as RFC 6749 says. By default not.",
    ),
    (
        "sasl.login.callback.handler.class",
        TEXT,
        "A Python class that gets the credentials, as `package.module.Class` or an entry point in the group "
        f"`kustos.sasl.login.callbacks`; `{LOGIN_HANDLER}` is what happens without it.",
    ),
    ("sasl.login.class", TEXT, "As in Kafka; there is no login to replace here, so only its own."),
    ("sasl.login.connect.timeout.ms", _MILLISECONDS, "How long a connection may take: 10 s."),
    ("sasl.login.read.timeout.ms", _MILLISECONDS, "How long each part of an answer may take: 10 s."),
    ("sasl.login.retry.backoff.ms", _FROM_ZERO, "The first pause between two attempts: 100."),
    ("sasl.login.retry.backoff.max.ms", _FROM_ZERO, "How long all pauses may take: 10000."),
    (
        "sasl.login.refresh.window.factor",
        TEXT,
        "The part of a token's life after which another is got: 0.8.",
    ),
    ("sasl.login.refresh.window.jitter", TEXT, "The random part of its life that is added to it: 0.05."),
    ("sasl.login.refresh.min.period.seconds", whole_number(0, 900), "The least time between two: 60."),
    ("sasl.login.refresh.buffer.seconds", whole_number(0, 3600), "The time before its end: 300."),
    (
        "sasl.kerberos.service.name",
        TEXT,
        "With `GSSAPI`: the first part of the principals that are connected to, mostly `kafka`; needed "
        "unless the login module has `serviceName`.",
    ),
    ("sasl.kerberos.kinit.cmd", TEXT, "The program that renews a ticket cache: `/usr/bin/kinit`."),
    (
        "sasl.kerberos.ticket.renew.window.factor",
        TEXT,
        "The part of a ticket's life after which another is got: 0.8.",
    ),
    ("sasl.kerberos.ticket.renew.jitter", TEXT, "The random part of its life that is added to it: 0.05."),
    (
        "sasl.kerberos.min.time.before.relogin",
        whole_number(0, INT64_MAX, "milliseconds"),
        "The least time between two logins at the KDC: 60000.",
    ),
)
"""Key, kind and meaning; the client knows their defaults."""

_SECRETS: Final = ("secret", "passphrase")
"""The ends of the keys that are secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTable:
    """The settings with one prefix; `others` may do without being read here."""

    prefix: str
    protocol: Setting[str]
    mechanism: Setting[str]
    jaas: Setting[str]
    others: tuple[Setting[Any], ...]

    @property
    def settings(self) -> tuple[Setting[Any], ...]:
        """All of them."""
        return (self.protocol, self.mechanism, self.jaas, *self.others)


def client_table(prefix: str, section: Section, protocol_doc: str) -> ClientTable:
    """Return the settings of connections to one cluster."""
    needed = "needed for `SASL_PLAINTEXT` and `SASL_SSL`."
    login = (
        Setting(prefix + name, kind, None, section, doc, secret=name.endswith(_SECRETS))
        for name, kind, doc in _LOGIN
    )
    return ClientTable(
        prefix=prefix,
        protocol=Setting(
            prefix + "security.protocol",
            one_of("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"),
            "PLAINTEXT",
            section,
            protocol_doc,
        ),
        mechanism=Setting(
            prefix + "sasl.mechanism",
            one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
            None,
            section,
            f"The SASL mechanism for logging in; {needed}",
        ),
        jaas=Setting(
            prefix + "sasl.jaas.config",
            TEXT,
            None,
            section,
            "The login module: with user name and password, for `GSSAPI` with a keytab or a ticket cache, or "
            f"for `OAUTHBEARER`; {needed}",
            secret=True,
        ),
        others=(*client_tls_settings(prefix, section), *login),
    )
