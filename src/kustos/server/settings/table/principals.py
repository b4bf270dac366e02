"""The settings of principals: rules for names of certificates and of Kerberos, and the builder."""

from typing import Any, Final

from kustos.auth import MappingRuleError
from kustos.auth.mapping import DEFAULT_RULE, kerberos_shortener, ssl_principal_mapper
from kustos.client import SettingsError
from kustos.server.settings.kinds import TEXT, Kind, Setting


def _read_ssl_rules(text: str) -> str:
    try:
        ssl_principal_mapper(text)
    except MappingRuleError as error:
        raise SettingsError(str(error)) from None
    return text


def _read_kerberos_rules(text: str) -> tuple[str, ...]:
    # Kafka reads the setting as a list, so a rule can hold no comma
    rules = tuple(rule.strip() for rule in text.split(",")) if text else ()
    try:
        kerberos_shortener(rules, "")
    except MappingRuleError as error:
        raise SettingsError(str(error)) from None
    return rules


DEFAULT_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)

_HOW: Final = "`DEFAULT` or rules, with commas between them"

SSL_PRINCIPAL_MAPPING_RULES: Final = Setting(
    "ssl.principal.mapping.rules",
    Kind("string", _HOW, _read_ssl_rules),
    DEFAULT_RULE,
    "Principals",
    "How the name in a client's certificate becomes the name of its user: "
    "`RULE:pattern/replacement/` with `L` or `U` behind it, or `DEFAULT` for the whole name. The first rule "
    "whose pattern matches the whole name applies; without one the connection is closed. Rules need "
    "`kustos[mapping]`.",
    per_listener=True,
)
KERBEROS_PRINCIPAL_TO_LOCAL_RULES: Final = Setting(
    "sasl.kerberos.principal.to.local.rules",
    Kind("list", _HOW, _read_kerberos_rules),
    (DEFAULT_RULE,),
    "Principals",
    "How a Kerberos principal becomes the name of a user: `RULE:[n:format](pattern)s/from/to/g` with `/L` or "
    "`/U` behind it, or `DEFAULT` for the first part of names in the node's own realm. The first rule that "
    "applies is taken; without one the login is refused. Rules need `kustos[mapping]`.",
    per_listener=True,
)
KERBEROS_SERVICE_NAME: Final[Setting[str]] = Setting(
    "sasl.kerberos.service.name",
    TEXT,
    None,
    "SASL",
    "The service for which clients get Kerberos tickets: the first part of the principal in the JAAS "
    "config of GSSAPI. It may be left out; if it is given, the two must be the same.",
    per_listener=True,
)
PRINCIPAL_BUILDER_CLASS: Final = Setting(
    "principal.builder.class",
    TEXT,
    DEFAULT_PRINCIPAL_BUILDER,
    "Principals",
    "Who makes a principal of a name: Kafka's own class by its name, a Python class as "
    "`package.module.Class`, or the name of an entry point in the group `kustos.principal_builders`. A class "
    "of your own is handed every key of this file but the secrets of kustos.",
    per_listener=True,
)

PRINCIPAL_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    SSL_PRINCIPAL_MAPPING_RULES,
    KERBEROS_PRINCIPAL_TO_LOCAL_RULES,
    KERBEROS_SERVICE_NAME,
    PRINCIPAL_BUILDER_CLASS,
)
