"""A node: the composition root of all packages."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

import structlog

from kustos.authorizer import ACL_COUNT_UNKNOWN, SharedRules
from kustos.gateway.apis import (
    ALTER_ACLS,
    AclApis,
    AuditedApis,
    DelayedFuturePurgatory,
    MetadataApis,
    SharedApis,
    TokenSweeper,
    reloaded_settings,
    words_of_others,
)
from kustos.gateway.audit import AuditLog
from kustos.gateway.listener import GatewayParts, ListenerPlan
from kustos.gateway.metrics import (
    GatewayMetrics,
    GatewayObserver,
    LoopLag,
    WatchedLog,
    WatchedProcess,
    WatchedQuorum,
)
from kustos.gateway.quorum import StalenessGate
from kustos.gateway.session import AnswerBudget, LocalApis, RequestBudget
from kustos.gateway.shadow import WatchedTrial
from kustos.gateway.store import (
    ALONE,
    DecidedOffset,
    Followers,
    LocalLog,
    MetadataSource,
    MetadataWriter,
    SnapshotTaker,
)
from kustos.metadata.control import ApiError
from kustos.metadata.image import MetadataImage
from kustos.metadata.store import MetadataStore
from kustos.protocol import DescribedConfig, OfferedApis
from kustos.runtime import SystemClock, SystemEntropy, collect_seldom, freeze_objects
from kustos.server.admin import AdminSide
from kustos.server.authorization.authorization import StandardAuthorization, authorization_of
from kustos.server.authorization.life import close, server_info, start
from kustos.server.callbacks import CallbackHandlers
from kustos.server.candidate import CandidateSide
from kustos.server.listener_plans import ListenerPlans
from kustos.server.log_lines import LOG_LINES
from kustos.server.oauth import BearerTokens
from kustos.server.process import WHOLE, NodePart, load_late_modules, open_audit_log, warm_codecs
from kustos.server.quorum import QuorumSide
from kustos.server.sasl import PlainSide, token_lookup
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.workers import share_of
from kustos.server.tls import TlsSide
from kustos.server.upstream import UpstreamSide
from kustos.wire import Message

LOG: Final = structlog.get_logger("kustos.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMetadata:
    """Where a process gets its metadata. `decided`: how far its decisions follow it.

    `gate`: closes when the metadata is too old; `quorum`: this process follows the quorum itself.
    """

    source: MetadataSource
    decided: DecidedOffset
    gate: StalenessGate | None = None
    quorum: QuorumSide | None = None

    @classmethod
    def open(cls, settings: KustosSettings, followers: Followers = ALONE) -> Self:
        """Return the log of this process, or the quorum that it follows; raise `MetadataError` or OSError.

        `followers`: the node's other processes.
        """
        decided = DecidedOffset()
        if settings.quorum is None:
            return cls(source=LocalLog(MetadataWriter(embedded_store(settings), followers)), decided=decided)
        quorum = QuorumSide.open(settings, settings.quorum, decided, followers)
        return cls(source=quorum.source, decided=decided, gate=quorum.gate, quorum=quorum)


class Node:
    """A running node. Created inside the event loop by `open`; `start` serves, `stop` shuts down cleanly."""

    def __init__(
        self,
        settings: KustosSettings,
        metadata: NodeMetadata,
        audit: AuditLog,
        part: NodePart = WHOLE,
    ) -> None:
        self.settings: Final = settings
        self.part: Final = part
        source = metadata.source
        self.source: Final = source
        self.store: Final = source.store
        self.audit: Final = audit
        self.metrics: Final = GatewayMetrics(_own_mechanisms(settings))
        self.writer: Final = source.writer if isinstance(source, LocalLog) else None
        """Writes the log of this process; None: the metadata comes from elsewhere."""
        self.quorum: Final = metadata.quorum
        self._gate: Final = metadata.gate
        rules = settings.token_rules
        self._upkeep: Final[list[TokenSweeper | SnapshotTaker]] = []
        if self.writer is not None:
            self._upkeep.append(TokenSweeper(self.writer, rules.expiry_check_interval_ms))
            self._upkeep.append(SnapshotTaker(self.writer))
        self.tokens: Final = token_lookup(rules.secret, self.image)
        self.handlers: Final = CallbackHandlers(settings.own_class_configs)
        self.plain: Final = PlainSide(SystemEntropy())
        self.bearer_tokens: Final = BearerTokens(filter(part.serves, settings.listeners), SystemClock())
        self.authorization: Final = authorization_of(settings, source, metadata.decided, metadata.gate)
        in_file = SharedRules(settings.super_users, settings.allow_everyone_if_no_acl_found)
        self.candidate: Final = CandidateSide(
            lambda: self.authorization.rules or in_file, audit.security.record, lambda: audit.now_ms
        )
        self.purgatory: Final = DelayedFuturePurgatory(
            ALTER_ACLS, settings.connections.connections_max_idle_ms
        )
        self._answers: Final = AnswerBudget(settings.answers_max_bytes // settings.workers.count)
        self._requests: Final = RequestBudget(settings.requests_max_bytes // settings.workers.count)
        self.upstream: Final = UpstreamSide(settings, self.metrics)
        self.cluster: Final = self.upstream.cluster
        self._lag: Final = LoopLag(asyncio.get_running_loop().time, self.metrics.sample_rates)
        self.offered: Final = OfferedApis(lambda: self.cluster.versions, lambda: self.cluster.features)
        self.in_flight: Final = self.upstream.in_flight(
            sees_all_changes=self._changes_own_log, others=part.drain_others
        )
        self.tls: Final = TlsSide(settings.listeners, settings.node_id)
        local = self._local_apis()
        self.local: Final = self._audited(local)
        self.admin: Final = AdminSide(
            settings,
            source,
            self.writer,
            self.authorization,
            local,
            self._audited,
            self.tls,
            part.loggers,
        )
        self.gateway: Final = part.make_gateway(
            self._plans(),
            self._parts(),
            settings.upstream_metadata_max_age_ms / 1000,
        )
        self.http = (
            None
            if settings.http is None
            else part.make_http(settings.http, self.metrics, self.readiness, self.details)
        )
        self._watch()

    def _watch(self) -> None:
        """Make what others keep metrics of the node, too."""
        metrics, register = self.metrics, self.metrics.registry.register
        metrics.watch(
            acl_count=self.acl_count,
            metadata_offset=lambda: self.authorization.position.offset,
            audit=self.audit,
        )
        if isinstance(self.authorization, StandardAuthorization):
            standard = self.authorization.authorizer.standard
            metrics.watch_authorizer(self.acl_count, lambda: standard.searches, self.authorization.metrics)
        metrics.watch_topic_ids(self.cluster.topic_ids)
        metrics.watch_loop(self._lag)
        metrics.watch_purgatory(self.purgatory)
        metrics.watch_answers(self._answers)
        metrics.watch_requests(self._requests)
        metrics.watch_listeners(self.settings.listeners_enforce)
        register(WatchedTrial(lambda: self.candidate.trial))
        register(WatchedProcess(lambda: LOG_LINES.lost))
        if self.quorum is not None:
            register(WatchedQuorum(self.quorum.figures))
        if (writer := self.writer) is not None:
            register(WatchedLog(lambda: writer.store.takes_changes))

    @classmethod
    async def open(
        cls, settings: KustosSettings, metadata: NodeMetadata | None = None, part: NodePart = WHOLE
    ) -> Self:
        """Return a node with its metadata loaded and its audit sinks opened.

        `metadata`: where it comes from, if that is open already. Raise `MetadataError` or `AuditSinkError`
        if one of them cannot be used.
        """
        load_late_modules()
        warm_codecs()
        metadata = metadata or NodeMetadata.open(settings)
        try:
            audit = await open_audit_log(
                settings, part.name, str(metadata.source.store.properties.cluster_id)
            )
        except BaseException:
            await metadata.source.close()
            raise
        try:
            return cls(settings, metadata, audit, part)
        except BaseException:
            await metadata.source.close()
            await audit.close()
            raise

    def _plans(self) -> list[ListenerPlan]:
        plans = ListenerPlans(
            self.settings,
            self.image,
            self.tokens,
            self.bearer_tokens,
            self.tls,
            self.admin,
            self.offered.body,
            self.handlers,
            self.plain,
        )
        return [plans.plan(each) for each in self.settings.listeners if self.part.serves(each)]

    def _audited(self, apis: LocalApis) -> AuditedApis:
        return AuditedApis(apis, self.audit.security, lambda: self.audit.now_ms)

    def _authorizer_settings(self, resource: Message) -> list[DescribedConfig] | ApiError:
        return self.admin.book.describe_authorizer(resource)

    def staged(self, settings: KustosSettings) -> Callable[[], None]:
        """Return what puts new settings in force, as far as they may change; raise `SettingsError`."""
        stores, users = self.tls.staged(settings.listeners), self.plain.staged(settings.listeners)

        def commit() -> None:
            stores()
            users()
            self.gateway.admission.change_limits(settings.limits)
            self.audit.budgets.use.bytes_per_hour = settings.audit.allowed_bytes_per_hour
            self.candidate.load(settings.candidate_acls)

        return commit

    def settings_reloaded(self, keys: frozenset[str]) -> None:
        """Record in the audit log that these settings of the file are in force from now on."""
        self.audit.security.record(reloaded_settings(self.settings.node_id, keys, self.audit.now_ms))

    def image(self) -> MetadataImage:
        """Return the metadata that logins are checked against now."""
        return self.store.image if self._gate is None else self._gate.current_image(self.store)

    def _local_apis(self) -> LocalApis:
        """Return the APIs that the node answers itself."""
        acls = AclApis(self.authorization.authorizer, self.purgatory)
        shared = SharedApis(self.image, self.offered.body, acls, self._authorizer_settings)
        return MetadataApis(self.source, shared)

    @property
    def _changes_own_log(self) -> bool:
        """Whether only this node changes the ACLs that decide."""
        return self.settings.quorum is None and isinstance(self.authorization, StandardAuthorization)

    def _parts(self) -> GatewayParts:
        settings = self.settings
        return GatewayParts(
            cluster=self.cluster,
            local=self.local,
            observer=GatewayObserver(
                self.audit,
                self.metrics,
                self.authorization.position,
                # controllers do not report the offset of a change
                changes_own_log=self._changes_own_log,
                trial=self.candidate.trial,
            ),
            metrics=self.metrics,
            decider=self.authorization.decider,
            connect_as=self.upstream.connect_as,
            context_authorizer=self.authorization.context_authorizer,
            offered=lambda: self.offered.versions,
            in_flight=self.in_flight,
            answers=self._answers,
            requests=self._requests,
            limits=replace(
                settings.limits,
                max_unauthenticated_connections=share_of(
                    settings.limits.max_unauthenticated_connections, settings.workers.count
                ),
            ),
            answer_versions=self.offered.answer,
        )

    def acl_count(self) -> int:
        """Return how many ACLs are in force, -1 if the authorizer does not count them."""
        authorizer = self.authorization.authorizer
        try:
            count = ACL_COUNT_UNKNOWN if authorizer is None else authorizer.acl_count
        except Exception as error:  # noqa: BLE001 - a custom authorizer must not keep the metrics from being read
            LOG.warning("the authorizer cannot count its ACLs", reason=words_of_others(error))
            return ACL_COUNT_UNKNOWN
        return count if type(count) is int else ACL_COUNT_UNKNOWN

    def readiness(self) -> dict[str, bool]:
        """Return the conditions for serving requests, and whether they hold."""
        return {
            "metadata": self.authorization.is_ready,
            "upstream": bool(self.cluster.brokers) and self.cluster.is_reachable,
            "listeners": self.gateway.is_open,
            "audit": self.audit.is_ready,
            **self.bearer_tokens.readiness,
            **({} if self._gate is None else {"quorum": self._gate.is_open}),
        }

    def details(self) -> dict[str, object]:
        """Return further facts for operators: metadata, candidate ACLs, and which listeners are not guards.

        After a failed metadata write decisions go on, and every change is refused.
        """
        no_guards = {
            each.name: each.mode.value
            for each in self.settings.listeners
            if not self.settings.listeners_enforce[each.name]
        }
        shown = {"listeners_without_guard": no_guards} if no_guards else {}
        return {**self._metadata_details(), **shown, **self.candidate.details()}

    def _metadata_details(self) -> dict[str, object]:
        if self.quorum is not None:
            return self.quorum.details()
        return {} if self.writer is None else {"metadata_takes_changes": self.writer.store.takes_changes}

    async def start(self) -> None:
        """Serve, each listener as soon as the authorizer can decide for it.

        Raise `UpstreamUnavailableError`, `NoPortForBrokerError`, `AuthorizerError` or OSError.
        """
        for warning in self.settings.warnings:
            LOG.warning(warning)
        self._lag.start()
        if self.http is not None:
            await self.http.start()
        self.bearer_tokens.start()
        self.candidate.load(self.settings.candidate_acls)
        authorizer = self.authorization.authorizer
        ready = None
        if authorizer is not None:
            ready = start(authorizer, server_info(self.settings, str(self.store.properties.cluster_id)))
        self.authorization.load()
        if self.settings.quorum is None:
            # the settings, the expiry of tokens and the snapshots of a quorum are its controllers' task
            self.admin.load()
        for each in self._upkeep:
            each.start()
        waits = ready if self.quorum is None else self.quorum.start(ready)
        await self.gateway.start(self.part.waits(waits))
        # the schemas of all messages alone cost a full collection a tenth of a second
        freeze_objects()
        collect_seldom()
        LOG.info(
            "kustos is up",
            node_id=self.settings.node_id,
            acls=self.acl_count(),
            offset=self.store.last_offset,
            listeners=[f"{each.name}://{each.bind}" for each in self.settings.listeners],
        )

    def hurry(self) -> None:
        """End all connections at once, while `stop` waits for answers."""
        self.gateway.close()

    async def stop(self) -> None:
        """End the connections, then flush and close everything, each even if another one fails."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.source.close)
            if self.authorization.authorizer is not None:
                stack.push_async_callback(close, self.authorization.authorizer)
            stack.push_async_callback(self.purgatory.close)
            stack.push_async_callback(self.bearer_tokens.stop)
            stack.push_async_callback(self.handlers.close)
            for each in self._upkeep:
                stack.push_async_callback(each.stop)
            stack.push_async_callback(self.audit.close)
            stack.push_async_callback(self.candidate.stop)
            if self.http is not None:
                stack.push_async_callback(self.http.stop)
            stack.push_async_callback(self.upstream.stop)
            stack.push_async_callback(self.gateway.stop)
            stack.callback(self._lag.stop)


def _own_mechanisms(settings: KustosSettings) -> frozenset[str]:
    """Return the mechanisms of the operator's own, which have series of their own in the metrics."""
    return frozenset(
        mechanism for each in settings.listeners if each.sasl is not None for mechanism in each.sasl.callbacks
    )


def embedded_store(settings: KustosSettings) -> MetadataStore:
    """Return the store of this node's own log, recovered and locked; raise `MetadataError` or OSError."""
    return MetadataStore.open(
        settings.metadata_directory,
        token_rules=settings.token_rules,
        policy=settings.log_policy,
        node_id=settings.node_id,
    )
