"""The node's authorization: StandardAuthorizer, a custom authorizer, or none.

The gateway gets sessions on a compiled index that follows the metadata log, a `ContextAuthorizer` that checks
every result of a custom authorizer, or deciders that allow everything.
"""

import asyncio
from typing import Final, Protocol

from kustos.acl import KafkaPrincipal
from kustos.authorizer import (
    Authorizer,
    AuthorizerMetrics,
    SharedRules,
    StandardAuthorizerPlugin,
)
from kustos.gateway.apis import CustomContextAuthorizer, UnusedDecider, discard
from kustos.gateway.metrics import AclPosition, FixedPosition
from kustos.gateway.quorum import StalenessGate
from kustos.gateway.store import AuthorizerPublisher, DecidedOffset, MetadataSource
from kustos.protocol import ContextAuthorizer, Decider, OpenDecider
from kustos.server.authorization.life import AuthorizerStartError, start_error
from kustos.server.settings.node import KustosSettings


class Authorization(Protocol):
    """The interface between the node and its authorizer."""

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer, None if there is none."""

    @property
    def context_authorizer(self) -> ContextAuthorizer | None:
        """Decides instead of the deciders, unless None."""

    @property
    def is_ready(self) -> bool:
        """Whether the metadata log allows decisions at the moment."""

    @property
    def position(self) -> AclPosition:
        """The position in the metadata log whose ACLs decide."""

    @property
    def rules(self) -> SharedRules | None:
        """The current rules besides the ACLs; None: the settings of the file."""

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection."""

    def load(self) -> None:
        """Load the ACLs after the start of the authorizer."""


class NoAuthorization:
    """No authorizer: everything is allowed, and there are no ACLs (SECURITY_DISABLED)."""

    authorizer: None = None
    context_authorizer: None = None
    rules: None = None
    is_ready = True
    position = FixedPosition()

    def decider(self, _principal: KafkaPrincipal, _host: str) -> Decider:
        """Return a decider that allows everything."""
        return OpenDecider()

    def load(self) -> None:
        """Do nothing: there are no ACLs."""


class StandardAuthorization:
    """Kafka's StandardAuthorizer on the ACLs of this node's metadata log."""

    context_authorizer: None = None

    def __init__(self, source: MetadataSource, decided: DecidedOffset, gate: StalenessGate | None) -> None:
        loop = asyncio.get_running_loop()
        self.metrics: Final = AuthorizerMetrics()
        self.authorizer: Final = StandardAuthorizerPlugin(
            loop.create_future, mutator=source.mutator, metrics=self.metrics
        )
        self._store: Final = source.store
        self.publisher: Final = AuthorizerPublisher(self.authorizer, loop, decided)
        self._gate: Final = gate

    @property
    def is_ready(self) -> bool:
        """Whether the ACLs are loaded and follow the log."""
        return self.authorizer.standard.is_ready and (self._gate is None or self._gate.is_open)

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection."""
        if self._gate is None:
            return self.authorizer.standard.session(principal, host)
        return self._gate.guarded(self.authorizer.standard, principal, host)

    @property
    def rules(self) -> SharedRules:
        """The current rules besides the ACLs."""
        standard = self.authorizer.standard
        return SharedRules(standard.super_users, standard.allow_everyone_if_no_acl_found)

    @property
    def position(self) -> AclPosition:
        """The position in the metadata log whose ACLs decide."""
        return self.publisher

    def load(self) -> None:
        """Follow the log from its present state."""
        self._store.add_publisher(self.publisher)

    def close(self) -> None:
        """Deny for good."""
        self.publisher.close()


class CustomAuthorization:
    """A custom authorizer; the ACLs of the metadata log are not used."""

    rules: None = None
    is_ready = True
    position = FixedPosition()

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer: Final = authorizer
        self.context_authorizer: Final = CustomContextAuthorizer(authorizer)
        self.decider = UnusedDecider

    def load(self) -> None:
        """Do nothing: it loads its own ACLs."""


def authorization_of(
    settings: KustosSettings, source: MetadataSource, decided: DecidedOffset, gate: StalenessGate | None
) -> Authorization:
    """Return the authorization of these settings, configured; raise `AuthorizerStartError`.

    `gate`: closes when the metadata is too old; None: it never is.
    """
    if not settings.authorization_enabled:
        return NoAuthorization()
    authorization: StandardAuthorization | CustomAuthorization
    if settings.make_authorizer is None:
        authorization = StandardAuthorization(source, decided, gate)
    else:
        try:
            authorization = CustomAuthorization(settings.make_authorizer())
        except Exception as error:
            raise start_error(settings.authorizer_name, "cannot be created", error) from error
    name = type(authorization.authorizer).__name__
    try:
        answer: object = authorization.authorizer.configure(settings.authorizer_configs)
    except Exception as error:
        raise start_error(name, "does not take its settings", error) from error
    if answer is not None:
        discard(answer)
        raise AuthorizerStartError(f"`{name}.configure` returned something, it must not (is it `async`?)")
    return authorization
