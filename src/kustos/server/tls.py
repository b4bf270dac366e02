"""TLS of a node's listeners: contexts, principals of certificates, and replacement of stores.

Stores are replaced by SIGHUP, by the log's settings (`IncrementalAlterConfigs`), and when their files change
(`tls.follow_files`). Each process of a node has its own contexts with the same files.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import structlog

from kustos.acl import KafkaPrincipal
from kustos.auth import AuthError, ListenerPrincipals, NoMatchingRuleError
from kustos.auth.mapping import fields_of_der, rfc2253_of_der, ssl_group_mapper
from kustos.client import SettingsError
from kustos.gateway.listener import ListenerTls
from kustos.metadata.control import ConfigResourceType
from kustos.metadata.image import ConfigRemoved, ConfigSet, MetadataDelta, MetadataImage
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import LISTENER_PREFIX
from kustos.server.settings.tls import LISTENER_TLS, ListenerTlsSettings
from kustos.tls import (
    CertificateParts,
    MadeContext,
    Side,
    TlsContexts,
    TlsError,
    TlsSettings,
    certificate_parts,
    prove,
)
from kustos.wire import DerError

LOG: Final = structlog.get_logger("kustos.server")


DYNAMIC_KEYS: Final = tuple(setting.name for setting in LISTENER_TLS if setting.dynamic)
"""The keys of a listener that `IncrementalAlterConfigs` may change."""


class TlsSide:
    """The contexts of all listeners with TLS; a `MetadataPublisher` that follows the log's settings.

    The constructor raises `TlsError` if stores cannot be used.
    """

    def __init__(self, listeners: Iterable[ListenerSettings], node_id: int) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._node: Final = str(node_id)
        self._given: dict[str, ListenerTlsSettings] = {
            each.name: each.tls for each in listeners if each.tls is not None
        }
        self._contexts: Final = {name: _contexts_of(name, tls) for name, tls in self._given.items()}
        self._key_of: Final = {
            f"{LISTENER_PREFIX}{name.lower()}.{key}": (name, key)
            for name in self._given
            for key in DYNAMIC_KEYS
        }
        self._values: dict[str, str] = {}

    @property
    def keys(self) -> frozenset[str]:
        """The names of the settings that the log can change."""
        return frozenset(self._key_of)

    def listener(
        self, listener: ListenerSettings, principals: ListenerPrincipals, handshake_timeout_ms: int
    ) -> ListenerTls | None:
        """Return the TLS of a listener, None if it has none."""
        contexts = self._contexts.get(listener.name)
        if contexts is None:
            return None
        # on other listeners, the login determines the principal
        rules = listener.principals.ssl_group_mapping_rules
        principal_of = None if listener.sasl is not None else certificate_principals(principals, rules)
        return ListenerTls(contexts, principal_of, handshake_timeout_ms)

    def check(self, resource_name: str, changes: Mapping[str, str | None]) -> None:
        """Raise ValueError if a change of the log's settings cannot be put in force.

        As in Kafka stores belong to one node. Called on the writer's thread.
        """
        concerned = sorted(key for key in changes if key in self._key_of)
        if concerned and resource_name != self._node:
            raise ValueError(f"`{concerned[0]}` can be changed for one node only, name the node")
        values: dict[str, str | None] = {**self._values, **changes}
        present = {key: value for key, value in values.items() if value is not None and key in self._key_of}
        for name in sorted({self._key_of[key][0] for key in concerned}):
            try:
                self._current(name).checked(self._settings(name, present))
            except TlsError as error:
                raise ValueError(f"listener `{name}`: {error}") from None

    def _current(self, name: str) -> TlsContexts:
        """Return contexts for validation only; their files are not watched."""
        contexts = self._contexts[name]
        if contexts.has_new_files():
            with suppress(TlsError):  # reported where it is served
                contexts.replace()
        return contexts

    def _settings(self, name: str, values: Mapping[str, str]) -> TlsSettings:
        texts = {self._key_of[key][1]: text for key, text in values.items() if self._key_of[key][0] == name}
        return self._given[name].changed_by(texts)

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Put the stores of an image in force."""
        found = image.configs_of(ConfigResourceType.BROKER, self._node)
        self._follow({key: value for key, value in found.items() if key in self._key_of})

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Put changed stores in force."""
        values, concerned = dict(self._values), False
        for change in delta.changes:
            if not isinstance(change, ConfigSet | ConfigRemoved) or change.name not in self._key_of:
                continue
            if change.resource_type != ConfigResourceType.BROKER or change.resource_name != self._node:
                continue
            concerned = True
            if isinstance(change, ConfigSet):
                values[change.name] = change.value
            else:
                values.pop(change.name, None)
        if concerned:
            # also if the value is the same: the file's content may have changed (KAFKA-14136)
            self._follow(values, changed=frozenset(each.name for each in _configs(delta)))

    def _follow(self, values: dict[str, str], changed: frozenset[str] = frozenset()) -> None:
        former, self._values = self._values, values
        for name in self._given:
            keys = [key for key, (listener, _) in self._key_of.items() if listener == name]
            if any(former.get(key) != values.get(key) or key in changed for key in keys):
                self._loop.call_soon_threadsafe(self._apply, name, dict(values))

    def _apply(self, name: str, values: Mapping[str, str]) -> None:
        try:
            self._contexts[name].replace(self._settings(name, values))
        except TlsError as error:
            reason = str(error)
            LOG.error("stores of the log are not in force, the old ones stay", listener=name, reason=reason)
        else:
            LOG.info("stores of the log are in force", listener=name)

    def staged(self, listeners: Iterable[ListenerSettings]) -> Callable[[], None]:
        """Return the function that puts the file's current stores in force; raise `SettingsError` if they are
        unusable."""
        given = dict(self._given)
        made: list[tuple[TlsContexts, TlsSettings, MadeContext]] = []
        for each in listeners:
            if each.tls is None or each.name not in given or each.tls == given[each.name]:
                continue
            contexts = self._current(each.name)
            own = {key: text for key, text in self._values.items() if self._key_of[key][0] == each.name}
            try:
                settings = each.tls.changed_by({self._key_of[key][1]: text for key, text in own.items()})
                made.append((contexts, settings, contexts.checked(settings)))
            except TlsError as error:
                raise SettingsError(f"listener `{each.name}`: {error}") from None
            given[each.name] = each.tls

        def commit() -> None:
            self._given = given
            for contexts, settings, context in made:
                contexts.put_in_force(settings, context)

        return commit


def _configs(delta: MetadataDelta) -> Iterable[ConfigSet | ConfigRemoved]:
    return (each for each in delta.changes if isinstance(each, ConfigSet | ConfigRemoved))


def _contexts_of(name: str, tls: ListenerTlsSettings) -> TlsContexts:
    try:
        contexts = TlsContexts(tls.settings, Side.SERVER)
        contexts.made.report_expired_trust(LOG.bind(listener=name))
        certificate = contexts.made.certificate
        if certificate is None or not certificate.has_expired:
            prove(contexts.made, Side.SERVER)
        else:
            # as in Kafka, the node serves it: clients that do not verify it may connect
            LOG.error("the listener's certificate has expired, clients refuse it", listener=name)
    except TlsError as error:
        raise TlsError(f"listener `{name}`: {error}") from None
    return contexts


def certificate_principals(
    principals: ListenerPrincipals, group_rules: str = ""
) -> Callable[[str, bytes | None], KafkaPrincipal]:
    """Return the function that builds a principal from a client's address and certificate; it raises
    `TlsError`."""
    groups_of = ssl_group_mapper(group_rules) if group_rules else None

    def principal_of(host: str, certificate: bytes | None) -> KafkaPrincipal:
        try:
            if certificate is None:
                return principals.of_certificate(host, None, None)
            name, parts = _named(certificate)
            groups: tuple[str, ...] = ()
            if groups_of is not None:
                groups = groups_of(fields_of_der(parts.subject, parts.alternative_names))
            return principals.of_certificate(host, name, certificate, groups)
        except AuthError as error:
            raise TlsError(f"the client's certificate gives no principal: {error}") from None

    return principal_of


def _named(certificate: bytes) -> tuple[str, CertificateParts]:
    """Return the name in a certificate, and its parts; raise `TlsError`."""
    try:
        parts = certificate_parts(certificate)
        name = rfc2253_of_der(parts.subject)
    except (DerError, NoMatchingRuleError):
        raise TlsError("the client's certificate cannot be read") from None
    if parts.has_expired:
        # it may have expired since the handshake started
        raise TlsError("the client's certificate has expired")
    return name, parts
