"""The principals of a listener, by its settings."""

from collections.abc import Mapping

from kustos.auth import (
    GSSAPI,
    DefaultKafkaPrincipalBuilder,
    KafkaPrincipalBuilder,
    ListenerPrincipals,
    configured,
    default_realm,
)
from kustos.auth.mapping import kerberos_shortener, ssl_principal_mapper
from kustos.server.settings.listeners import ListenerSettings


def listener_principals(listener: ListenerSettings, configs: Mapping[str, str]) -> ListenerPrincipals:
    """Return the principals of a listener, its builder configured; raise `PrincipalBuilderError`.

    `configs`: what a custom class is handed. For GSSAPI the realm of `krb5.conf` is read.
    """
    settings = listener.principals
    builder: KafkaPrincipalBuilder
    if settings.builder_class is not None:
        builder = configured(settings.builder_class, configs)
    else:
        has_kerberos = listener.sasl is not None and GSSAPI in listener.sasl.enabled_mechanisms
        builder = DefaultKafkaPrincipalBuilder(
            ssl_principal_mapper(settings.ssl_principal_mapping_rules),
            kerberos_shortener(
                settings.kerberos_principal_to_local_rules, default_realm() if has_kerberos else ""
            ),
        )
    return ListenerPrincipals(
        listener_name=listener.name, security_protocol=listener.security_protocol, builder=builder
    )
