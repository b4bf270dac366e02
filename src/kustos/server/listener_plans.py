"""Plans of a node's listeners for the gateway: addresses, limits, logins, principals and TLS."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from kustos.auth import (
    GSSAPI,
    ApiVersionsBody,
    DefaultKafkaPrincipalBuilder,
    KafkaPrincipalBuilder,
    ListenerPrincipals,
    MechanismFactory,
    SaslServerMachine,
    TokenLookup,
    configured,
    default_realm,
)
from kustos.auth.mapping import kerberos_shortener, ssl_principal_mapper
from kustos.gateway.listener import ConnectionSettings, ListenerPlan
from kustos.gateway.upstream import AddressRanges, BrokerHosts, BrokerPorts
from kustos.metadata.image import MetadataImage
from kustos.protocol import ADMIN_TABLE, refusal_body
from kustos.runtime import SystemClock, SystemEntropy
from kustos.server.admin import AdminSide
from kustos.server.callbacks import CallbackHandlers
from kustos.server.oauth import BearerTokens
from kustos.server.sasl import PlainSide, mechanism_factories, scram_decoys
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.workers import share_of
from kustos.server.tls import TlsSide


class ListenerPlans:
    """Plans listeners; `image` returns the current metadata for logins."""

    def __init__(
        self,
        settings: KustosSettings,
        image: Callable[[], MetadataImage],
        tokens: TokenLookup | None,
        bearer_tokens: BearerTokens,
        tls: TlsSide,
        admin: AdminSide,
        versions_body: ApiVersionsBody,
        handlers: CallbackHandlers,
        plain: PlainSide,
    ) -> None:
        self._plain: Final = plain
        self._settings: Final = settings
        self._image: Final = image
        self._tokens: Final = tokens
        self._bearer_tokens: Final = bearer_tokens
        self._tls: Final = tls
        self._admin: Final = admin
        self._versions_body: Final = versions_body
        self._handlers: Final = handlers

    def plan(self, listener: ListenerSettings) -> ListenerPlan:
        """Return a listener with all that it needs; raise `PrincipalBuilderError` or `CredentialsError`."""
        settings = self._settings
        principals = listener_principals(listener, settings.own_class_configs)
        return ListenerPlan(
            name=listener.name,
            security_protocol=listener.security_protocol,
            bind_host=listener.bind.host,
            port=listener.bind.port,
            brokers=_brokers(listener),
            connection=self._connection_settings(listener),
            sasl_machine=self._sasl_machines(listener, principals),
            principal_without_login=principals.without_login,
            admin=self._admin.parts if listener.is_controller else None,
            tls=self._tls.listener(listener, principals, settings.handshake_timeout_ms),
            proxies=None if listener.proxies is None else AddressRanges(listener.proxies),
            mode=listener.mode,
        )

    def _connection_settings(self, listener: ListenerSettings) -> ConnectionSettings:
        own = listener.connection
        # workers do not serve admin listeners
        processes = 1 if listener.is_controller else self._settings.workers.count
        return replace(
            own,
            max_unauthenticated_connections=share_of(own.max_unauthenticated_connections, processes),
            max_unauthenticated_connections_per_ip=share_of(
                own.max_unauthenticated_connections_per_ip, processes
            ),
        )

    def _sasl_machines(
        self, listener: ListenerSettings, principals: ListenerPrincipals
    ) -> Callable[[str], SaslServerMachine | None]:
        sasl = listener.sasl
        if sasl is None:
            return lambda _: None
        validate = self._bearer_tokens.validator(sasl.oauth)
        decoys, entropy = scram_decoys(self._settings, self._image), SystemEntropy()

        def of_operator(mechanism: str) -> MechanismFactory | None:
            # decoys have the form of Kafka's tools, because the form of the operator's users is unknown
            plain = scram_decoys(self._settings)
            return self._handlers.factory(listener.name, sasl, mechanism, plain, entropy, self._tokens)

        factories = mechanism_factories(
            sasl,
            self._image,
            decoys,
            entropy,
            self._tokens,
            validate,
            of_operator,
            self._plain.users(listener.name, sasl),
        )
        clock = SystemClock()
        versions, refusal = self._versions_body, refusal_body
        if listener.is_controller:
            versions, refusal = self._admin.api_versions_body, partial(refusal_body, table=ADMIN_TABLE)
        return lambda host: SaslServerMachine(
            sasl.server, factories, versions, clock, refusal, partial(principals.of_login, host)
        )


def _brokers(listener: ListenerSettings) -> BrokerPorts | BrokerHosts:
    advertised = listener.advertised
    if listener.broker_hosts is not None:
        return BrokerHosts(advertised.host, listener.broker_hosts, advertised.port)
    return BrokerPorts(
        advertised.host,
        listener.broker_port_start,
        listener.advertised_broker_port_start,
        listener.broker_port_count,
    )


def listener_principals(listener: ListenerSettings, configs: Mapping[str, str]) -> ListenerPrincipals:
    """Return the principals of a listener, its builder configured; raise `PrincipalBuilderError`.

    `configs`: the configuration of a custom class. For GSSAPI, this reads the realm of `krb5.conf`.
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
