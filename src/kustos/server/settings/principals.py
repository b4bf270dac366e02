"""The principals of a listener's clients: its rules for names, and its principal builder."""

from dataclasses import dataclass
from typing import Final

from kustos.auth import KafkaPrincipalBuilder
from kustos.auth.mapping import DEFAULT_RULE
from kustos.client import PluginKind
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table import principals as table

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
