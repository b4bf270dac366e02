"""A node's settings, read from its properties file: checked as a whole, typed, frozen.

First every value is parsed alone, and all errors are reported together; then the settings are combined, and
the first contradiction is raised. No text here contains the value of a secret, or of a `${env:...}` or
`${file:...}` reference.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kustos.acl import AclValueError
from kustos.authorizer import Authorizer, parse_super_users
from kustos.authorizer.audit import AuditFormat
from kustos.client import ClientSettings, ClientTls, NodeAddress, SettingsError, read_properties
from kustos.gateway.admin import ConfigEntry
from kustos.gateway.audit import AuditSettings, OnFull, SyslogTransport
from kustos.gateway.listener import AuthorizationMode, FailedLoginLimits
from kustos.gateway.upstream import RevocationSettings
from kustos.metadata.control import TokenRules, TokenSecret
from kustos.metadata.log import LogPolicy
from kustos.server.settings.clients import token_mechanism, upstream_settings
from kustos.server.settings.entries import config_entries, reloadable_keys
from kustos.server.settings.kinds import Setting
from kustos.server.settings.listeners import (
    ListenerSettings,
    check_ports,
    listener_settings,
)
from kustos.server.settings.logins import check_delay, failed_login_limits
from kustos.server.settings.plugins import find_authorizer
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.quorum import QuorumSettings, quorum_settings
from kustos.server.settings.table import audit as audit_table
from kustos.server.settings.table import log as log_table
from kustos.server.settings.table import login as login_table
from kustos.server.settings.table import node as table
from kustos.server.settings.table.tls import HANDSHAKE_TIMEOUT_MS
from kustos.server.settings.table.workers import REVOCATION_GRACE_MS, REVOCATION_TIMEOUT_MS
from kustos.server.settings.workers import WorkerSettings, worker_settings


def log_policy(given: GivenSettings) -> LogPolicy:
    """Return the policy for the log's files."""
    return LogPolicy(
        segment_bytes=given.require(log_table.SEGMENT_BYTES),
        segment_ms=given.require(log_table.SEGMENT_MS),
        snapshot_record_bytes=given.require(log_table.SNAPSHOT_BYTES),
        snapshot_interval_ms=given.require(log_table.SNAPSHOT_INTERVAL_MS),
        retention_bytes=given.require(log_table.RETENTION_BYTES),
        retention_ms=given.require(log_table.RETENTION_MS),
    )


DECOY_SECRET_MIN_CHARACTERS: Final = 32
"""As many as the secret of a metadata directory has bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KustosSettings:
    """All settings of a node. Upstream's `client` holds credentials, which no repr shows."""

    node_id: int
    metadata_directory: Path
    log_policy: LogPolicy
    quorum: QuorumSettings | None
    """The quorum that the metadata comes from; None: it is this node's own."""
    workers: WorkerSettings
    listeners: tuple[ListenerSettings, ...]
    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool
    authorization_enabled: bool
    """Whether a listener uses the authorizer."""
    candidate_acls: Path | None
    """Where the ACLs are that are evaluated beside those in force; None: there are none."""
    authorizer_name: str
    """`authorizer.class.name`."""
    make_authorizer: Callable[[], Authorizer] | None
    """Creates an authorizer other than StandardAuthorizer; None: StandardAuthorizer."""
    authorizer_configs: Mapping[str, str] = field(repr=False)
    """The authorizer's configuration; unknown keys may hold secrets."""
    own_class_configs: Mapping[str, str] = field(repr=False)
    """The configuration of principal builders, callback handlers and mechanisms; empty if all are Kafka's."""
    early_start_listeners: frozenset[str]
    socket_request_max_bytes: int
    connections_max_idle_ms: int
    handshake_timeout_ms: int
    """For a whole TLS handshake."""
    answers_max_bytes: int
    """For all processes together."""
    requests_max_bytes: int
    """For all processes together."""
    max_connections: int
    max_connections_per_ip: int
    max_unauthenticated_connections: int
    drain_timeout_ms: int
    failed_logins: FailedLoginLimits
    revocation: RevocationSettings
    upstream: ClientSettings
    upstream_token_mechanism: str | None
    """By which links log in to brokers as their clients; None: as `upstream` says."""
    upstream_metadata_max_age_ms: int
    token_rules: TokenRules
    """Its secret appears in no text."""
    decoy_secret: bytes | None = field(repr=False)
    """Shared by nodes that serve the same users, so that nobody learns which exist; None: the directory's."""
    config_entries: tuple[ConfigEntry, ...] = field(repr=False)
    """All settings, as DescribeConfigs shows them."""
    reloadable_keys: frozenset[str]
    """The keys of the file that a reload puts in force; of its own the authorizer says that."""
    audit: AuditSettings
    http: NodeAddress | None
    warnings: tuple[str, ...]
    """Warnings for the operator, one line each; logged at the start."""

    @property
    def listeners_enforce(self) -> Mapping[str, bool]:
        """Whether each listener is a guard, by its name."""
        return {each.name: each.mode is AuthorizationMode.ENFORCE for each in self.listeners}


def load_settings(
    path: Path,
    environment: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> KustosSettings:
    """Return the settings of a properties file; raise one `SettingsError` with all errors.

    `environment`: resolves `${env:NAME}`, by default this process's own. `properties`: the content of the
    file, if the caller has read it already.
    """
    if properties is None:
        properties = read_properties(path)
    try:
        return settings_from(properties, os.environ if environment is None else environment)
    except SettingsError as error:
        raise SettingsError(f"`{path}`: {error}") from None


def settings_from(properties: Mapping[str, str], environment: Mapping[str, str]) -> KustosSettings:
    """Return the settings of these keys; raise `SettingsError`."""
    given = GivenSettings.read(properties, environment)
    http = given.get(table.HTTP_LISTENER)
    listeners = listener_settings(given)
    check_ports(listeners, http)
    check_delay(given, {each.name: each.logins for each in listeners})
    authorization_enabled = _authorization_enabled(given, listeners)
    make_authorizer = _make_authorizer(given) if authorization_enabled else None
    audit = _audit(given)
    quorum = quorum_settings(given, listeners)
    upstream = upstream_settings(given)
    workers = worker_settings(given, is_quorum=quorum is not None, is_foreign=make_authorizer is not None)
    return KustosSettings(
        node_id=given.require(table.NODE_ID),
        metadata_directory=_metadata_directory(given),
        log_policy=log_policy(given),
        quorum=quorum,
        workers=workers,
        listeners=listeners,
        super_users=_super_users(given),
        allow_everyone_if_no_acl_found=given.require(table.ALLOW_EVERYONE),
        authorization_enabled=authorization_enabled,
        candidate_acls=given.get(table.CANDIDATE_ACLS),
        authorizer_name=given.require(table.AUTHORIZER_CLASS).strip(),
        make_authorizer=make_authorizer,
        authorizer_configs=_authorizer_configs(given, is_foreign=make_authorizer is not None),
        own_class_configs=given.custom_class_configs() if given.has_own_classes else {},
        early_start_listeners=_early_start_listeners(given, listeners),
        socket_request_max_bytes=given.require(table.REQUEST_MAX_BYTES),
        connections_max_idle_ms=given.require(table.MAX_IDLE_MS),
        handshake_timeout_ms=given.require(HANDSHAKE_TIMEOUT_MS),
        answers_max_bytes=given.require(table.ANSWERS_MAX_BYTES),
        requests_max_bytes=given.require(table.REQUESTS_MAX_BYTES),
        max_connections=given.require(table.MAX_CONNECTIONS),
        max_connections_per_ip=given.require(table.MAX_CONNECTIONS_PER_IP),
        max_unauthenticated_connections=given.require(login_table.MAX_UNAUTHENTICATED_CONNECTIONS),
        drain_timeout_ms=given.require(table.SHUTDOWN_DRAIN_TIMEOUT_MS),
        failed_logins=failed_login_limits(given),
        revocation=RevocationSettings(
            grace_ms=given.require(REVOCATION_GRACE_MS), timeout_ms=given.require(REVOCATION_TIMEOUT_MS)
        ),
        upstream=upstream,
        upstream_token_mechanism=token_mechanism(given, upstream, listeners),
        upstream_metadata_max_age_ms=given.require(table.UPSTREAM_METADATA_MAX_AGE_MS),
        token_rules=_token_rules(given),
        decoy_secret=_decoy_secret(given),
        config_entries=config_entries(properties, given),
        reloadable_keys=reloadable_keys(given, listeners),
        audit=audit,
        http=http,
        warnings=tuple(given.warnings),
    )


def _metadata_directory(given: GivenSettings) -> Path:
    directory = given.get(table.METADATA_LOG_DIR)
    if directory is not None:
        return directory
    directories = given.get(table.LOG_DIRS)
    if not directories:
        raise SettingsError("`metadata.log.dir` is not set, name the directory of the metadata log")
    return Path(directories[0])


def _super_users(given: GivenSettings) -> frozenset[str]:
    try:
        return parse_super_users(given.require(table.SUPER_USERS))
    except AclValueError as error:
        raise SettingsError(f"`{table.SUPER_USERS.name}`: {error}") from None


def _authorization_enabled(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> bool:
    """Return whether a listener uses an authorizer; raise `SettingsError` if there is none, or none does."""
    class_name = given.require(table.AUTHORIZER_CLASS).strip()
    concerned = [each.name for each in listeners if each.mode is not AuthorizationMode.OFF]
    if not class_name and concerned:
        raise SettingsError(
            f"`{table.AUTHORIZER_CLASS.name}` is empty, which would allow everybody everything on listener "
            f"`{concerned[0]}`; leave it out, or set `{table.AUTHORIZATION_MODE.name}=off` as well to "
            "confirm that"
        )
    if not concerned and class_name and given.has(table.AUTHORIZER_CLASS):
        raise SettingsError(
            f"`{table.AUTHORIZER_CLASS.name}` is `{class_name}`, but `{table.AUTHORIZATION_MODE.name}` is "
            "`off`; set only one of them"
        )
    return bool(concerned)


def _make_authorizer(given: GivenSettings) -> Callable[[], Authorizer] | None:
    return find_authorizer(given.require(table.AUTHORIZER_CLASS).strip())


def _authorizer_configs(given: GivenSettings, *, is_foreign: bool) -> Mapping[str, str]:
    if is_foreign:
        return given.custom_class_configs()
    own = (table.SUPER_USERS.name, table.ALLOW_EVERYONE.name)
    return {key: given.texts[key] for key in own if key in given.texts}


def _early_start_listeners(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> frozenset[str]:
    controllers = given.require(table.CONTROLLER_LISTENER_NAMES)
    early: tuple[str, ...] | None = given.get(table.EARLY_START_LISTENERS)
    if early is None:
        # as in Kafka: an operator needs them to repair what keeps the ACLs from loading
        return frozenset(name.upper() for name in controllers)
    known = {listener.name for listener in listeners}.union(controllers)
    for name in early:
        if name not in known:
            raise SettingsError(
                f"`{table.EARLY_START_LISTENERS.name}` has `{name}`, which is neither in "
                f"`{table.LISTENERS.name}` nor in `{table.CONTROLLER_LISTENER_NAMES.name}`, name one that is "
                "(in capitals)"
            )
    return frozenset(early)


def _decoy_secret(given: GivenSettings) -> bytes | None:
    text = given.get(login_table.DECOY_SECRET)
    if text is None:
        return None
    if len(text) < DECOY_SECRET_MIN_CHARACTERS:
        raise SettingsError(
            f"`{login_table.DECOY_SECRET.name}` must have {DECOY_SECRET_MIN_CHARACTERS} characters at least"
        )
    try:
        return hashlib.sha512(text.encode()).digest()
    except UnicodeEncodeError:
        # Python's own error contains the whole text
        raise SettingsError(f"`{login_table.DECOY_SECRET.name}`: the secret is not Unicode text") from None


def _token_rules(given: GivenSettings) -> TokenRules:
    try:
        secret = TokenSecret.of(given.get(login_table.DELEGATION_TOKEN_SECRET_KEY))
    except ValueError as error:
        raise SettingsError(f"`{login_table.DELEGATION_TOKEN_SECRET_KEY.name}`: {error}") from None
    return TokenRules(
        secret=secret,
        max_lifetime_ms=given.require(login_table.DELEGATION_TOKEN_MAX_LIFETIME_MS),
        expiry_time_ms=given.require(login_table.DELEGATION_TOKEN_EXPIRY_TIME_MS),
        expiry_check_interval_ms=given.require(login_table.DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS),
    )


_NEEDED_BY_SINK: Final[dict[str, Setting[Any]]] = {
    "json": audit_table.AUDIT_JSON_DIR,
    "kafka": audit_table.AUDIT_KAFKA_TOPIC,
    "log4j": audit_table.AUDIT_LOG4J_FILE,
    "syslog": audit_table.AUDIT_SYSLOG_RECEIVER,
}


def _audit(given: GivenSettings) -> AuditSettings:
    sinks = given.require(audit_table.AUDIT_SINKS)
    for sink in sinks:
        if not given.has(_NEEDED_BY_SINK[sink]):
            needed = _NEEDED_BY_SINK[sink].name
            raise SettingsError(
                f"`{needed}` is not set, `{sink}` in `{audit_table.AUDIT_SINKS.name}` needs it"
            )
    if not sinks:
        given.warnings.append(f"`{audit_table.AUDIT_SINKS.name}` names no sink: no decision is recorded")
    return AuditSettings(
        sinks=sinks,
        json_directory=given.get(audit_table.AUDIT_JSON_DIR),
        json_max_bytes=given.require(audit_table.AUDIT_JSON_MAX_BYTES),
        json_max_files=given.require(audit_table.AUDIT_JSON_MAX_FILES),
        json_roll_ms=given.require(audit_table.AUDIT_JSON_ROLL_MS),
        json_format=AuditFormat(given.require(audit_table.AUDIT_JSON_FORMAT)),
        kafka_format=AuditFormat(given.require(audit_table.AUDIT_KAFKA_FORMAT)),
        kafka_topic=given.get(audit_table.AUDIT_KAFKA_TOPIC),
        syslog_receiver=given.get(audit_table.AUDIT_SYSLOG_RECEIVER),
        syslog_format=AuditFormat(given.require(audit_table.AUDIT_SYSLOG_FORMAT)),
        syslog_facility=given.require(audit_table.AUDIT_SYSLOG_FACILITY),
        syslog_max_bytes=given.require(audit_table.AUDIT_SYSLOG_MAX_BYTES),
        syslog_tls=_syslog_tls(given) if "syslog" in sinks else None,
        log4j_file=given.get(audit_table.AUDIT_LOG4J_FILE),
        log4j_level=given.require(audit_table.AUDIT_LOG4J_LEVEL),
        queue_max_events=given.require(audit_table.AUDIT_QUEUE_MAX_EVENTS),
        on_full=OnFull(given.require(audit_table.AUDIT_ON_FULL)),
        allowed_bytes_per_hour=given.require(audit_table.AUDIT_ALLOWED_MAX_BYTES_PER_HOUR),
        denied_bytes_per_hour=given.require(audit_table.AUDIT_DENIED_MAX_BYTES_PER_HOUR),
    )


def _syslog_tls(given: GivenSettings) -> ClientTls | None:
    """Return the TLS of the syslog receiver, None without; raise `SettingsError` for unusable stores."""
    receiver = given.require(audit_table.AUDIT_SYSLOG_RECEIVER)
    if receiver.transport is not SyslogTransport.TLS:
        return None
    prefix = audit_table.SYSLOG_PREFIX
    try:
        tls = ClientTls.from_properties(
            {key.removeprefix(prefix): text for key, text in given.texts.items() if key.startswith(prefix)}
        )
        tls.context()
    except SettingsError as error:
        raise SettingsError(f"in the settings that begin with `{prefix}`: {error}") from None
    return tls
