"""Principals: the node's own Kerberos principal, and the rules and the builder for clients' principals."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.auth import (
    GSSAPI,
    JaasEntry,
    KafkaPrincipalBuilder,
    MappingRuleError,
    NoMatchingRuleError,
    require_gssapi,
)
from kustos.auth.mapping import (
    DEFAULT_RULE,
    KerberosName,
    kerberos_shortener,
    ssl_group_mapper,
    ssl_principal_mapper,
)
from kustos.client import LOGIN_MODULES, PluginKind, SettingsError
from kustos.server.settings.properties import GivenSettings, listener_key
from kustos.settings import TEXT, Kind, Scope, Setting

KERBEROS_SERVICE_NAME: Final[Setting[str]] = Setting(
    "sasl.kerberos.service.name",
    TEXT,
    None,
    "SASL",
    "The service for which clients get Kerberos tickets: the first part of the principal in the JAAS "
    "config of GSSAPI. It may be left out; if it is given, the two must be the same.",
    scope=Scope.LISTENER,
    since="0.2.0",
)
DEFAULT_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
PRINCIPAL_BUILDER_CLASS: Final = Setting(
    "principal.builder.class",
    TEXT,
    DEFAULT_PRINCIPAL_BUILDER,
    "Principals",
    "Who makes a principal of a name: Kafka's own class by its name, a Python class as "
    "`package.module.Class`, or the name of an entry point in the group `kustos.principal_builders`. A class "
    "of your own is handed every key of this file but the secrets of kustos.",
    scope=Scope.LISTENER,
    kafkas_classes=(DEFAULT_PRINCIPAL_BUILDER,),
    since="0.2.0",
)

_MODULE: Final = LOGIN_MODULES[GSSAPI]
_EXAMPLE: Final = (
    f'`{_MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kustos/kafka.keytab" '
    'principal="kafka/host.example.com@EXAMPLE.COM";`'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosSettings:
    """The key of the service: `principal` is `service/host@REALM`."""

    keytab: Path
    principal: str


def kerberos_settings(given: GivenSettings, listener: str, entry: JaasEntry | None) -> KerberosSettings:
    """Return the settings of a listener that offers GSSAPI; raise `SettingsError`, `ExtraMissingError`."""
    key = listener_key("sasl.jaas.config", listener, GSSAPI)
    if entry is None:
        raise SettingsError(
            f"listener `{listener}` offers `GSSAPI` (Kafka's default) without a keytab: set `{key}` to "
            f"{_EXAMPLE}"
        )
    require_gssapi()
    options = entry.options
    for option in ("useKeyTab", "storeKey"):
        # without them, Java would take the key from a ticket cache, or have no key to accept clients
        if options.get(option, "").lower() != "true":
            raise SettingsError(f"`{key}` lacks `{option}=true`, write it as {_EXAMPLE}")
    for option in ("keyTab", "principal"):
        if not options.get(option):
            raise SettingsError(f"`{key}` lacks `{option}`, write it as {_EXAMPLE}")
    principal = options["principal"]
    try:
        name = KerberosName.parse(principal)
    except NoMatchingRuleError as error:
        raise SettingsError(f"`{key}`: {error}") from None
    if not (name.service and name.host):
        raise SettingsError(f"`{key}` has the principal `{principal}`, write it as `service/host@REALM`")
    for service in (options.get("serviceName"), given.get(KERBEROS_SERVICE_NAME, listener)):
        if service is not None and service != name.service:
            raise SettingsError(
                f"the principal `{principal}` in `{key}` is not of the service `{service}` that "
                "`sasl.kerberos.service.name` or `serviceName` names, make them the same"
            )
    return KerberosSettings(keytab=Path(options["keyTab"].removeprefix("file:")), principal=principal)


PRINCIPAL_BUILDERS: Final = PluginKind(
    PRINCIPAL_BUILDER_CLASS.name,
    "kustos.principal_builders",
    DEFAULT_PRINCIPAL_BUILDER,
    (KafkaPrincipalBuilder,),
)


def _rules_of(mapper: Callable[[str], object]) -> Callable[[str], str]:
    """Return the reader of rules for a mapper, which checks them."""

    def read(text: str) -> str:
        try:
            mapper(text)
        except MappingRuleError as error:
            raise SettingsError(str(error)) from None
        return text

    return read


def _read_kerberos_rules(text: str) -> tuple[str, ...]:
    # Kafka reads the setting as a list, so a rule cannot contain a comma
    rules = tuple(rule.strip() for rule in text.split(",")) if text else ()
    try:
        kerberos_shortener(rules, "")
    except MappingRuleError as error:
        raise SettingsError(str(error)) from None
    return rules


_RULES: Final = "`DEFAULT` or rules, with commas between them"


SSL_GROUP_MAPPING_RULES: Final = Setting(
    "kustos.ssl.group.mapping.rules",
    Kind(
        "string", "rules `RULE:pattern/replacement/`, with commas between them", _rules_of(ssl_group_mapper)
    ),
    "",
    "Principals",
    "How the fields of a certificate that names the client become the client's groups, to which the ACLs "
    "of `Group:` principals apply: rules such as `RULE:OU=(.*)/$1/`. Each rule applies to each attribute "
    "of the subject (`CN=`, `O=`, `OU=`, ...) and to each alternative name (`DNS=`, `EMAIL=`, `URI=`, such "
    "as a SPIFFE id) whose whole text it matches. Without rules, clients have no groups. Rules need "
    "`kustos[mapping]`.",
    scope=Scope.LISTENER,
    since="0.3.0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalSettings:
    """The settings of one listener. `builder_class` None: Kafka's default, which applies the rules."""

    builder_class: type[KafkaPrincipalBuilder] | None = None
    ssl_principal_mapping_rules: str = Setting(
        "ssl.principal.mapping.rules",
        Kind("string", _RULES, _rules_of(ssl_principal_mapper)),
        DEFAULT_RULE,
        "Principals",
        "How the name in a client's certificate becomes the name of its user: `RULE:pattern/replacement/` "
        "with `L` or `U` behind it, or `DEFAULT` for the whole name. The first rule whose pattern matches "
        "the whole name applies; without one the connection is closed. Rules need `kustos[mapping]`.",
        scope=Scope.LISTENER,
        since="0.2.0",
    ).field()
    ssl_group_mapping_rules: str = SSL_GROUP_MAPPING_RULES.field()
    kerberos_principal_to_local_rules: tuple[str, ...] = Setting(
        "sasl.kerberos.principal.to.local.rules",
        Kind("list", _RULES, _read_kerberos_rules),
        (DEFAULT_RULE,),
        "Principals",
        "How a Kerberos principal becomes the name of a user: `RULE:[n:format](pattern)s/from/to/g` with "
        "`/L` or `/U` behind it, or `DEFAULT` for the first part of names in the node's own realm. The first "
        "rule that applies is taken; without one the login is refused. Rules need `kustos[mapping]`.",
        scope=Scope.LISTENER,
        since="0.2.0",
    ).field()


def principal_settings(given: GivenSettings, listener: str) -> PrincipalSettings:
    """Return the settings of this listener; raise `SettingsError`."""
    name = given.require(PRINCIPAL_BUILDER_CLASS, listener).strip()
    return PrincipalSettings(
        builder_class=None if name == DEFAULT_PRINCIPAL_BUILDER else PRINCIPAL_BUILDERS.find(name),
        **given.fields(PrincipalSettings, listener),
    )
