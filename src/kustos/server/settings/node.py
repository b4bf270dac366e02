"""The settings of a node as one frozen value, and the declarations of the keys for the node as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kustos.authorizer import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, Authorizer
from kustos.client import ClientSettings, NodeAddress, SettingsError, parse_address
from kustos.gateway.admin import ConfigEntry
from kustos.gateway.audit import AuditSettings
from kustos.gateway.listener import AuthorizationMode, ConnectionSettings, GatewayLimits
from kustos.gateway.session import answer_budget, request_budget
from kustos.gateway.upstream import RevocationSettings
from kustos.metadata.control import TokenRules
from kustos.metadata.log import LogPolicy
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.quorum import QuorumSettings
from kustos.server.settings.workers import WorkerSettings
from kustos.settings import (
    ANY_TEXT,
    BOOLEAN,
    INT32_MAX,
    INT64_MAX,
    PATH,
    TEXT,
    Kind,
    Setting,
    TakesEffect,
    list_of,
    one_of,
    whole_number,
)

LOG_DIRS: Final = Setting(
    "log.dirs",
    list_of(),
    None,
    "Node",
    "Directories; the first one holds the metadata log unless `metadata.log.dir` is set. Set one of the two.",
)
METADATA_LOG_DIR: Final = Setting(
    "metadata.log.dir", PATH, None, "Node", "The directory of the metadata log (ACLs and SCRAM users)."
)
EARLY_START_LISTENERS: Final[Setting[tuple[str, ...]]] = Setting(
    "early.start.listeners",
    list_of(),
    None,
    "Listeners",
    "Listeners that open before the authorizer has its ACLs. Every other listener opens once the authorizer "
    "can decide its requests. The default is `controller.listener.names`.",
)
SUPER_USERS: Final = Setting(
    SUPER_USERS_CONFIG,
    ANY_TEXT,
    "",
    "Authorization",
    "Principals that may do everything: `User:name`, separated by semicolons.",
    takes_effect=TakesEffect.AUTHORIZER,
)
LEGACY_ACL_FILE: Final = Setting(
    "kustos.legacy.acl.file",
    TEXT,
    None,
    "Authorization",
    "The file with the ACLs of `kafka.security.auth.SimpleAclAuthorizer`, which needs one.",
)
LEGACY_RULES: Final = Setting(
    "kustos.legacy.rules",
    one_of("released", "kip-11"),
    "released",
    "Authorization",
    "The rules of `SimpleAclAuthorizer`: `released` as in Kafka 2.8, `kip-11` as in the draft.",
)
DECOY_SECRET: Final[Setting[str]] = Setting(
    "kustos.sasl.scram.decoy.secret",
    TEXT,
    None,
    "SASL",
    "The secret from which kustos derives salt and iterations for unknown SCRAM users, 32 characters at "
    "least. Nodes that serve the same users must have the same secret: otherwise a client that tries a name "
    "on two nodes learns whether the user exists. Without it each metadata directory has its own.",
    secret=True,
)
DELEGATION_TOKEN_SECRET_KEY: Final[Setting[str]] = Setting(
    "delegation.token.secret.key",
    ANY_TEXT,
    None,
    "Delegation tokens",
    "The key for the HMACs of delegation tokens. Without it, or if it is empty, tokens are disabled.",
    secret=True,
)


def _read_bind_address(text: str) -> NodeAddress:
    if text.startswith(":"):
        raise SettingsError(
            "an address to listen on needs its host: write `127.0.0.1` for this machine only, or "
            "`0.0.0.0` to be reached from everywhere"
        )
    return parse_address(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class KustosSettings:
    """All settings of a node. Upstream's `client` holds credentials, which no repr shows."""

    node_id: int = Setting(
        "node.id", whole_number(0, INT32_MAX), None, "Node", "The number of this node.", required=True
    ).field()
    metadata_directory: Path
    log_policy: LogPolicy
    quorum: QuorumSettings | None
    """The quorum that has the metadata; None: the node has its own."""
    workers: WorkerSettings
    listeners: tuple[ListenerSettings, ...]
    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool = Setting(
        ALLOW_EVERYONE_CONFIG,
        BOOLEAN,
        False,
        "Authorization",
        "Whether a resource that no ACL names is open to all.",
        takes_effect=TakesEffect.AUTHORIZER,
    ).field()
    authorization_enabled: bool
    """Whether a listener uses the authorizer."""
    candidate_acls: Path | None = Setting(
        "kustos.authorization.candidate.acls",
        PATH,
        None,
        "Authorization",
        "Candidate ACLs: a file in any form that `kustos acls convert` reads, a snapshot, or a directory "
        "with a metadata log. They are evaluated in addition to the ACLs in force, but not enforced; an "
        "audit event shows each different decision. SIGHUP reads them again.",
        takes_effect=TakesEffect.RELOAD,
        since="0.2.0",
    ).optional_field()
    authorizer_name: str
    """`authorizer.class.name`."""
    make_authorizer: Callable[[], Authorizer] | None
    """Creates an authorizer other than StandardAuthorizer; None: StandardAuthorizer."""
    authorizer_configs: Mapping[str, str] = field(repr=False)
    """The authorizer's configuration; unknown keys may hold secrets."""
    own_class_configs: Mapping[str, str] = field(repr=False)
    """The configuration of principal builders, callback handlers and mechanisms; empty if all are Kafka's."""
    early_start_listeners: frozenset[str]
    connections: ConnectionSettings
    """The limits of connections to listeners without limits of their own."""
    handshake_timeout_ms: int = Setting(
        "kustos.ssl.handshake.timeout.ms",
        whole_number(100, INT32_MAX, "milliseconds"),
        10_000,
        "TLS",
        "How long a TLS handshake of a client may take as a whole.",
        since="0.2.0",
    ).field()
    answers_max_bytes: int = Setting(
        "kustos.gateway.answers.max.bytes",
        whole_number(0, INT64_MAX, "bytes"),
        answer_budget.ANSWERS_MAX_BYTES,
        "Limits",
        "How many bytes of answers the node buffers for clients that have not read them; each worker has an "
        "equal part. A Fetch gets at most a fourth of what is free, and at least 1 MiB: kustos lowers its "
        "`max_bytes` to that.",
    ).field()
    requests_max_bytes: int = Setting(
        "kustos.gateway.requests.max.bytes",
        whole_number(0, INT64_MAX, "bytes"),
        request_budget.REQUESTS_MAX_BYTES,
        "Limits",
        "How many bytes of requests the node holds before it begins them; each worker has an equal part. "
        "Beyond that each user gets a part, and larger requests take turns. Clients that have not "
        "authenticated get a fourth at most.",
        since="0.2.0",
    ).field()
    limits: GatewayLimits
    """The limits of all listeners, for all processes together."""
    revocation: RevocationSettings
    upstream: ClientSettings
    upstream_token_mechanism: str | None
    """The mechanism of links that log in as their clients; None: they log in as `upstream` says."""
    upstream_metadata_max_age_ms: int = Setting(
        "kustos.upstream.metadata.max.age.ms",
        whole_number(1, INT32_MAX, "milliseconds"),
        300_000,
        "Upstream",
        "How often the gateway refreshes the list of brokers; it also does so when a broker is not reached.",
    ).field()
    token_rules: TokenRules
    """Its secret appears in no text."""
    decoy_secret: bytes | None = field(repr=False)
    """The secret of nodes that serve the same users, which hides who exists; None: the directory's own."""
    config_entries: tuple[ConfigEntry, ...] = field(repr=False)
    """All settings, as DescribeConfigs shows them."""
    reloadable_keys: frozenset[str]
    """The keys of the file that a reload changes, without those that the authorizer itself decides on."""
    audit: AuditSettings
    http: NodeAddress | None = Setting(
        "kustos.http.listener",
        Kind("address", "`host:port`", _read_bind_address),
        None,
        "HTTP",
        "The address of `/metrics`, `/health` and `/ready`: `host:port`. Without it kustos does not serve "
        "them. It has no authentication: use an address that only operators reach.",
    ).optional_field()
    warnings: tuple[str, ...]
    """Warnings for the operator, one line each; logged at the start."""

    @property
    def listeners_enforce(self) -> Mapping[str, bool]:
        """Whether each listener is a guard, by its name."""
        return {each.name: each.mode is AuthorizationMode.ENFORCE for each in self.listeners}
