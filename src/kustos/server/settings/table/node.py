"""The one table of a node's settings: what is read, checked and documented comes from it.

Names and defaults are Kafka's wherever Kafka has the setting; `kustos.*` is what Kafka lacks.
"""

from typing import Any, Final

from kustos.client import NodeAddress
from kustos.gateway.listener import DRAIN_TIMEOUT_MS
from kustos.gateway.session import answer_budget, request_budget
from kustos.server.settings.kinds import (
    ANY_TEXT,
    BIND_ADDRESS,
    BOOLEAN,
    HOST_PATTERN,
    INT32_MAX,
    INT64_MAX,
    NETWORKS,
    PATH,
    TEXT,
    Setting,
    TakesEffect,
    list_of,
    one_of,
    whole_number,
)
from kustos.server.settings.table.audit import AUDIT_SETTINGS
from kustos.server.settings.table.callbacks import CALLBACK_SETTINGS
from kustos.server.settings.table.clients import client_table
from kustos.server.settings.table.log import LOG_SETTINGS
from kustos.server.settings.table.login import LOGIN_SETTINGS
from kustos.server.settings.table.oauth import OAUTH_SETTINGS
from kustos.server.settings.table.principals import PRINCIPAL_SETTINGS
from kustos.server.settings.table.quorum import QUORUM_SETTINGS
from kustos.server.settings.table.tls import TLS_SETTINGS
from kustos.server.settings.table.workers import WORKER_SETTINGS

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
STANDARD_AUTHORIZER_NAMES: Final = frozenset({STANDARD_AUTHORIZER, "kafka.security.authorizer.AclAuthorizer"})
"""Also the name of its predecessor on ZooKeeper (KIP-504): same settings, ACLs and audit line."""
UPSTREAM_PREFIX: Final = "kustos.upstream."


_COUNT: Final = whole_number(1, INT32_MAX)
_PORT: Final = whole_number(1, 65535)

NODE_ID: Final = Setting(
    "node.id", whole_number(0, INT32_MAX), None, "Node", "The number of this node.", required=True
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

LISTENERS: Final = Setting(
    "listeners",
    TEXT,
    None,
    "Listeners",
    "The addresses to listen on: `NAME://host:port`, separated by commas. The host is mandatory: "
    "`127.0.0.1` for this machine only, `0.0.0.0` for all interfaces, `[::]` for all with IPv6 as well (in "
    "Kafka an empty host means all interfaces; kustos refuses it).",
    required=True,
)
ADVERTISED_LISTENERS: Final = Setting(
    "advertised.listeners",
    TEXT,
    None,
    "Listeners",
    "The addresses that clients connect to, by the names of `listeners`. A listener without an entry here "
    "advertises its own address, which must not be `0.0.0.0`.",
)
SECURITY_PROTOCOL_MAP: Final = Setting(
    "listener.security.protocol.map",
    TEXT,
    None,
    "Listeners",
    "The security protocol of each listener name: `NAME:PROTOCOL`, with commas between them. A listener "
    "that bears the name of a protocol needs no entry.",
)
EARLY_START_LISTENERS: Final[Setting[tuple[str, ...]]] = Setting(
    "early.start.listeners",
    list_of(),
    None,
    "Listeners",
    "Listeners that open before the authorizer has its ACLs. Every other listener opens once the authorizer "
    "can decide its requests. The default is `controller.listener.names`.",
)
CONTROLLER_LISTENER_NAMES: Final[Setting[tuple[str, ...]]] = Setting(
    "controller.listener.names",
    list_of(),
    (),
    "Listeners",
    "The admin listeners: those of `listeners` that answer about this node itself, as Kafka's controllers do "
    "(features, quorum, its own settings, and requests in an Envelope), and forward nothing upstream.",
)
BROKER_PORT_START: Final = Setting(
    "kustos.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "Only with the prefix `listener.name.<listener>.`: clients reach the upstream broker with node id N at "
    "this port plus N, on the host of the listener. The default is `kustos.gateway.broker.port.start`.",
    per_listener=True,
)
BROKER_HOST_PATTERN: Final = Setting(
    "kustos.broker.host.pattern",
    HOST_PATTERN,
    None,
    "Listeners",
    "Only with the prefix `listener.name.<listener>.`, and for TLS: clients reach the upstream broker with "
    "node id N by this name with N in place of `$(nodeId)`, at the port of the listener, which then has no "
    "broker ports. The host and port of `advertised.listeners` are the bootstrap address.",
    per_listener=True,
)
ONLY_PER_LISTENER: Final = (BROKER_PORT_START, BROKER_HOST_PATTERN)
"""The settings that need the prefix of a listener."""

GATEWAY_BROKER_PORT_START: Final = Setting(
    "kustos.gateway.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "The first broker port of a listener without `kustos.broker.port.start`. The default is the port after "
    "the listener's own.",
)
BROKER_PORT_COUNT: Final = Setting(
    "kustos.gateway.broker.port.count",
    whole_number(1, 10_000),
    100,
    "Listeners",
    "How many broker ports each listener has: the highest node id upstream, plus one. The ports of "
    "listeners must not overlap.",
)

PROXY_PROTOCOL: Final = Setting(
    "kustos.proxy.protocol",
    BOOLEAN,
    False,
    "Listeners",
    "Whether load balancers before the listener send the PROXY protocol (version 1 or 2), so that hosts in "
    "ACLs and audit events are those of clients.",
    per_listener=True,
)
PROXY_ADDRESSES: Final = Setting(
    "kustos.proxy.protocol.addresses",
    NETWORKS,
    (),
    "Listeners",
    "The addresses or networks of these balancers. A header is required from them and refused from others.",
    per_listener=True,
)

ENABLED_MECHANISMS: Final = Setting(
    "sasl.enabled.mechanisms",
    list_of(),
    ("GSSAPI",),
    "SASL",
    "The SASL mechanisms that a listener offers: `GSSAPI` (Kafka's default; it needs `kustos[gssapi]` and a "
    "keytab), `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER` (it needs `kustos[oauth]`), and those "
    "of installed packages.",
    per_listener=True,
)
JAAS_CONFIG: Final = Setting(
    "sasl.jaas.config",
    TEXT,
    None,
    "SASL",
    "The login module of a mechanism; for `PLAIN` it holds the users, for `GSSAPI` it names the keytab. Set "
    "it for one mechanism, as `listener.name.<listener>.<mechanism>.sasl.jaas.config` or "
    "`<mechanism>.sasl.jaas.config`; without a mechanism kustos ignores it, as Kafka does. The SCRAM "
    "mechanisms and `OAUTHBEARER` need none here.",
    secret=True,
    per_listener=True,
    per_mechanism=True,
    takes_effect=TakesEffect.RELOAD_FOR_PLAIN,
)
MAX_REAUTH_MS: Final = Setting(
    "connections.max.reauth.ms",
    whole_number(0, INT64_MAX, "milliseconds"),
    0,
    "SASL",
    "How long a session lasts before the client must authenticate again (KIP-368); 0: no limit.",
    per_listener=True,
    per_mechanism=True,
)
FAILED_AUTHENTICATION_DELAY_MS: Final = Setting(
    "connection.failed.authentication.delay.ms",
    whole_number(0, INT32_MAX, "milliseconds"),
    100,
    "SASL",
    "The delay before the answer to a failed login. Must be below `connections.max.idle.ms`.",
)
MAX_RECEIVE_SIZE: Final = Setting(
    "sasl.server.max.receive.size",
    whole_number(1, INT32_MAX, "bytes"),
    524_288,
    "SASL",
    "The largest frame of a client that has not authenticated (KIP-938).",
    per_listener=True,
)

REQUEST_MAX_BYTES: Final = Setting(
    "socket.request.max.bytes",
    whole_number(1, INT32_MAX, "bytes"),
    104_857_600,
    "Limits",
    "The largest request.",
)
MAX_IDLE_MS: Final = Setting(
    "connections.max.idle.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    600_000,
    "Limits",
    "How long a connection may send nothing before kustos closes it.",
)
MAX_CONNECTIONS: Final = Setting(
    "max.connections",
    _COUNT,
    INT32_MAX,
    "Limits",
    "The largest number of connections of the node.",
    takes_effect=TakesEffect.RELOAD,
)
MAX_CONNECTIONS_PER_IP: Final = Setting(
    "max.connections.per.ip",
    _COUNT,
    INT32_MAX,
    "Limits",
    "The largest number of connections from one address.",
    takes_effect=TakesEffect.RELOAD,
)
ANSWERS_MAX_BYTES: Final = Setting(
    "kustos.gateway.answers.max.bytes",
    whole_number(0, INT64_MAX, "bytes"),
    answer_budget.ANSWERS_MAX_BYTES,
    "Limits",
    "How many bytes of answers the node buffers for clients that have not read them; each worker has an "
    "equal part. A Fetch gets at most a fourth of what is free, and at least 1 MiB: kustos lowers its "
    "`max_bytes` to that.",
)

REQUESTS_MAX_BYTES: Final = Setting(
    "kustos.gateway.requests.max.bytes",
    whole_number(0, INT64_MAX, "bytes"),
    request_budget.REQUESTS_MAX_BYTES,
    "Limits",
    "How many bytes of requests the node holds before it begins them; each worker has an equal part. Beyond "
    "that each user gets a part, and larger requests take turns. Clients that have not authenticated get a "
    "fourth at most.",
)
SHUTDOWN_DRAIN_TIMEOUT_MS: Final = Setting(
    "kustos.shutdown.drain.timeout.ms",
    whole_number(0, 600_000, "milliseconds"),
    DRAIN_TIMEOUT_MS,
    "Limits",
    "How long a node that stops waits for the answers to requests that it has begun, and for clients to read "
    "them. It begins no others meanwhile. Fetches and joins of groups are not awaited; 0: nothing is.",
)

AUTHORIZER_CLASS: Final = Setting(
    "authorizer.class.name",
    ANY_TEXT,
    STANDARD_AUTHORIZER,
    "Authorization",
    "The authorizer: the name of Kafka's own class (or of its predecessor "
    "`kafka.security.authorizer.AclAuthorizer`, which means the same here; or of the first one, "
    "`kafka.security.auth.SimpleAclAuthorizer`), a Python class as `package.module.Class`, or the name of "
    "an entry point in the group `kustos.authorizers`. A class of your own gets every key of this file "
    "except the secrets of kustos. In Kafka an empty value switches authorization off; here that also "
    "needs `kustos.authorization.mode=off`, else the node does not start.",
)
AUTHORIZATION_MODE: Final = Setting(
    "kustos.authorization.mode",
    one_of("enforce", "shadow", "off"),
    "enforce",
    "Authorization",
    "What the authorizer's decisions do. `enforce`: they are in force. `shadow`: everything passes that goes "
    "upstream, and what would have been denied is audited and counted; ACLs, users and tokens stay guarded, "
    "and so do admin listeners. `off`: no authorizer decides, every client may do everything. Only a "
    "listener with `enforce` is a guard.",
    per_listener=True,
)
SUPER_USERS: Final = Setting(
    "super.users",
    ANY_TEXT,
    "",
    "Authorization",
    "Principals that may do everything: `User:name`, separated by semicolons.",
    takes_effect=TakesEffect.RELOAD,
)
ALLOW_EVERYONE: Final = Setting(
    "allow.everyone.if.no.acl.found",
    BOOLEAN,
    False,
    "Authorization",
    "Whether a resource that no ACL names is open to all.",
    takes_effect=TakesEffect.RELOAD,
)
CANDIDATE_ACLS: Final = Setting(
    "kustos.authorization.candidate.acls",
    PATH,
    None,
    "Authorization",
    "Candidate ACLs: a file in any form that `kustos acls convert` reads, a snapshot, or a directory with a "
    "metadata log. They are evaluated beside the ACLs in force, without effect; where they decide otherwise, "
    "the audit event says so. Read again by each SIGHUP.",
    takes_effect=TakesEffect.RELOAD,
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

BOOTSTRAP_SERVERS: Final = Setting(
    UPSTREAM_PREFIX + "bootstrap.servers",
    TEXT,
    None,
    "Upstream",
    "Brokers of the upstream cluster: `host:port`, separated by commas.",
    required=True,
)
UPSTREAM: Final = client_table(UPSTREAM_PREFIX, "Upstream", "The security protocol of its brokers.")
UPSTREAM_IDENTITY: Final = Setting(
    UPSTREAM_PREFIX + "identity",
    one_of("service", "token"),
    "service",
    "Upstream",
    "As whom the connections of clients log in to brokers: `service`, as the principal of kustos; `token`, "
    "as the client itself, with a delegation token that kustos creates for it.",
)
UPSTREAM_TOKEN_MECHANISM: Final = Setting(
    UPSTREAM_PREFIX + "token.sasl.mechanism",
    one_of("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "SCRAM-SHA-512",
    "Upstream",
    "The SASL mechanism for these tokens.",
)
UPSTREAM_TIMEOUT_MS: Final = Setting(
    UPSTREAM_PREFIX + "request.timeout.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    30_000,
    "Upstream",
    "The time limit for requests of the gateway itself.",
)
UPSTREAM_METADATA_MAX_AGE_MS: Final = Setting(
    UPSTREAM_PREFIX + "metadata.max.age.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    300_000,
    "Upstream",
    "How often the gateway refreshes the list of brokers; it also does so when a broker is not reached.",
)

HTTP_LISTENER: Final[Setting[NodeAddress]] = Setting(
    "kustos.http.listener",
    BIND_ADDRESS,
    None,
    "HTTP",
    "The address of `/metrics`, `/health` and `/ready`: `host:port`. Without it kustos does not serve them. "
    "It has no authentication: use an address that only operators reach.",
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    *(value for value in tuple(globals().values()) if isinstance(value, Setting)),
    *LOGIN_SETTINGS,
    *PRINCIPAL_SETTINGS,
    *TLS_SETTINGS,
    *UPSTREAM.settings,
    *CALLBACK_SETTINGS,
    *OAUTH_SETTINGS,
    *AUDIT_SETTINGS,
    *LOG_SETTINGS,
    *QUORUM_SETTINGS,
    *WORKER_SETTINGS,
)
BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
