"""Principals: the own one of a node in Kerberos; of clients the rules for names, and the builder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.auth import GSSAPI, JaasEntry, KafkaPrincipalBuilder, NoMatchingRuleError, require_gssapi
from kustos.auth.mapping import DEFAULT_RULE, KerberosName
from kustos.client import PluginKind, SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of
from kustos.server.settings.table import principals as table
from kustos.server.settings.table.node import JAAS_CONFIG

MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_EXAMPLE: Final = (
    f'`{MODULE} required useKeyTab=true storeKey=true keyTab="/etc/kustos/kafka.keytab" '
    'principal="kafka/host.example.com@EXAMPLE.COM";`'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosSettings:
    """The key of the service: `principal` is `service/host@REALM`."""

    keytab: Path
    principal: str


def kerberos_settings(given: GivenSettings, listener: str, entry: JaasEntry | None) -> KerberosSettings:
    """Return the settings of a listener that offers GSSAPI; raise `SettingsError`, `ExtraMissingError`."""
    key = next(iter(keys_of(JAAS_CONFIG, listener, GSSAPI)))
    if entry is None:
        raise SettingsError(
            f"listener `{listener}` offers `GSSAPI` (Kafka's default) without a keytab: set `{key}` to "
            f"{_EXAMPLE}"
        )
    require_gssapi()
    options = entry.options
    for option in ("useKeyTab", "storeKey"):
        # without them Java would take the key from a ticket cache, or keep none to accept clients with
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
    for service in (options.get("serviceName"), given.get(table.KERBEROS_SERVICE_NAME, listener)):
        if service is not None and service != name.service:
            raise SettingsError(
                f"the principal `{principal}` in `{key}` is not of the service `{service}` that "
                f"`{table.KERBEROS_SERVICE_NAME.name}` or `serviceName` names, make them the same"
            )
    return KerberosSettings(keytab=Path(options["keyTab"].removeprefix("file:")), principal=principal)


PRINCIPAL_BUILDERS: Final = PluginKind(
    table.PRINCIPAL_BUILDER_CLASS.name,
    "kustos.principal_builders",
    table.DEFAULT_PRINCIPAL_BUILDER,
    (KafkaPrincipalBuilder,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalSettings:
    """The settings of one listener. `builder_class` None: Kafka's default, which applies the rules."""

    builder_class: type[KafkaPrincipalBuilder] | None = None
    ssl_principal_mapping_rules: str = DEFAULT_RULE
    kerberos_principal_to_local_rules: tuple[str, ...] = (DEFAULT_RULE,)


def principal_settings(given: GivenSettings, listener: str) -> PrincipalSettings:
    """Return the settings of this listener; raise `SettingsError`."""
    name = given.require(table.PRINCIPAL_BUILDER_CLASS, listener).strip()
    return PrincipalSettings(
        builder_class=None if name == table.DEFAULT_PRINCIPAL_BUILDER else PRINCIPAL_BUILDERS.find(name),
        ssl_principal_mapping_rules=given.require(table.SSL_PRINCIPAL_MAPPING_RULES, listener),
        kerberos_principal_to_local_rules=given.require(table.KERBEROS_PRINCIPAL_TO_LOCAL_RULES, listener),
    )
