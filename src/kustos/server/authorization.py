"""Who decides on this node, wired to everything else: StandardAuthorizer, a custom one, or nobody.

The three differ in what they give the gateway: sessions on a compiled index that follows the metadata
log, an `Asker` that trusts nothing it is told, or deciders that allow everything.
"""

import asyncio
from typing import Final, Protocol

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    AclMutator,
    AuthorizationResult,
    Authorizer,
    AuthorizerMetrics,
    Decision,
    Rule,
    RuleKind,
    StandardAuthorizerPlugin,
)
from kustos.authorizer.audit import NO_OFFSET
from kustos.gateway.authorizer_publisher import AuthorizerPublisher
from kustos.gateway.custom import CustomAsker, NobodyDecides, discard
from kustos.gateway.local import WriterMutator
from kustos.gateway.staleness import StalenessGate
from kustos.gateway.writer import MetadataWriter
from kustos.metadata.store import MetadataStore
from kustos.protocol import Asker, Decider
from kustos.server.authorizer_life import AuthorizerStartError, start_error
from kustos.server.settings import KustosSettings

EVERYTHING_ALLOWED: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.DEFAULT_ALLOW))


class Authorization(Protocol):
    """What the node needs of whoever decides."""

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer itself; None: there is none."""

    @property
    def asker(self) -> Asker | None:
        """Who decides in place of the deciders; None: they do."""

    @property
    def is_ready(self) -> bool:
        """Whether requests can be decided now, as far as the metadata log has a part in it."""

    @property
    def acl_offset(self) -> int:
        """The metadata offset whose ACLs decide now; -1: the decisions do not come from the log."""

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection."""

    def load(self) -> None:
        """Bring the ACLs, once the authorizer was started."""


class OpenDecider:
    """Allows everything: `kustos.authorization.mode=off`, where kustos authenticates and audits only."""

    def decide(self, _operation: AclOperation, _resource_type: ResourceType, _name: str) -> Decision:
        """Return that it is allowed."""
        return EVERYTHING_ALLOWED

    def decide_by_resource_type(self, _operation: AclOperation, _resource_type: ResourceType) -> Decision:
        """Return that it is allowed."""
        return EVERYTHING_ALLOWED


class NoAuthorization:
    """Nobody decides, everything is allowed, and there are no ACLs (SECURITY_DISABLED)."""

    authorizer: None = None
    asker: None = None
    is_ready = True
    acl_offset = NO_OFFSET

    def decider(self, _principal: KafkaPrincipal, _host: str) -> Decider:
        """Return one that allows everything."""
        return OpenDecider()

    def load(self) -> None:
        """There is nothing to load."""


class StandardAuthorization:
    """Kafka's StandardAuthorizer on the ACLs of this node's metadata log."""

    asker: None = None

    def __init__(
        self,
        store: MetadataStore,
        writer: MetadataWriter,
        mutator: AclMutator | None = None,
        gate: StalenessGate | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.metrics: Final = AuthorizerMetrics()
        self.authorizer: Final = StandardAuthorizerPlugin(
            loop.create_future, mutator=mutator or WriterMutator(writer), metrics=self.metrics
        )
        self._store: Final = store
        self.publisher: Final = AuthorizerPublisher(self.authorizer, loop)
        self._gate: Final = gate

    @property
    def is_ready(self) -> bool:
        """Whether the ACLs are loaded and in step with the log."""
        return self.authorizer.standard.is_ready and (self._gate is None or self._gate.is_open)

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection."""
        if self._gate is None:
            return self.authorizer.standard.session(principal, host)
        return self._gate.guarded(self.authorizer.standard, principal, host)

    @property
    def acl_offset(self) -> int:
        """The metadata offset whose ACLs decide now."""
        return self.publisher.offset

    def load(self) -> None:
        """Follow the log from its present state on."""
        self._store.add_publisher(self.publisher)


class CustomAuthorization:
    """An authorizer of somebody else's; the ACLs of the metadata log play no part."""

    is_ready = True
    acl_offset = NO_OFFSET

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer: Final = authorizer
        self.asker: Final = CustomAsker(authorizer)
        self.decider = NobodyDecides

    def load(self) -> None:
        """It loads what it needs by itself."""


def authorization_of(
    settings: KustosSettings,
    store: MetadataStore,
    writer: MetadataWriter,
    mutator: AclMutator | None = None,
    gate: StalenessGate | None = None,
) -> Authorization:
    """Return who decides by these settings, configured; raise `AuthorizerStartError`.

    `mutator`: who changes ACLs in place of the writer; `gate`: what closes when the metadata is too old.
    """
    if not settings.authorization_enabled:
        return NoAuthorization()
    made: StandardAuthorization | CustomAuthorization
    if settings.make_authorizer is None:
        made = StandardAuthorization(store, writer, mutator, gate)
    else:
        try:
            made = CustomAuthorization(settings.make_authorizer())
        except Exception as error:
            raise start_error(settings.authorizer_name, "cannot be made", error) from error
    name = type(made.authorizer).__name__
    try:
        answer: object = made.authorizer.configure(settings.authorizer_configs)
    except Exception as error:
        raise start_error(name, "does not take its settings", error) from error
    if answer is not None:
        discard(answer)
        raise AuthorizerStartError(f"`{name}.configure` returned something, it must not (is it `async`?)")
    return made
