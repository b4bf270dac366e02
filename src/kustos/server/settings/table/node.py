"""The one table of a node's settings: what is read, checked and documented comes from it.

Names and defaults are Kafka's wherever Kafka has the setting; `kustos.*` is what Kafka lacks.
"""

from typing import Any, Final

from kustos.client import NodeAddress
from kustos.gateway.session import answer_budget
from kustos.server.settings.kinds import (
    ANY_TEXT,
    BIND_ADDRESS,
    BOOLEAN,
    INT32_MAX,
    INT64_MAX,
    PATH,
    TEXT,
    Setting,
    list_of,
    one_of,
    whole_number,
)
from kustos.server.settings.table.audit import AUDIT_SETTINGS
from kustos.server.settings.table.log import LOG_SETTINGS
from kustos.server.settings.table.login import LOGIN_SETTINGS
from kustos.server.settings.table.principals import PRINCIPAL_SETTINGS
from kustos.server.settings.table.quorum import QUORUM_SETTINGS
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
    "Directories; the first one holds the metadata log unless `metadata.log.dir` is set. One of the two "
    "must be.",
)
METADATA_LOG_DIR: Final = Setting(
    "metadata.log.dir", PATH, None, "Node", "The directory of the metadata log (ACLs and SCRAM users)."
)

LISTENERS: Final = Setting(
    "listeners",
    TEXT,
    None,
    "Listeners",
    "What to listen on: `NAME://host:port`, with commas between them. The host must be written: "
    "`127.0.0.1` for this machine only, `0.0.0.0` to be reached from everywhere (in Kafka an empty host "
    "means everywhere; here it is refused).",
    required=True,
)
ADVERTISED_LISTENERS: Final = Setting(
    "advertised.listeners",
    TEXT,
    None,
    "Listeners",
    "What clients are told to connect to, by the names of `listeners`. A listener that is not named here "
    "is advertised as it is bound, which `0.0.0.0` cannot be.",
)
SECURITY_PROTOCOL_MAP: Final = Setting(
    "listener.security.protocol.map",
    TEXT,
    None,
    "Listeners",
    "The security protocol of each listener name: `NAME:PROTOCOL`, with commas between them. A listener "
    "that bears the name of a protocol needs no entry. `SSL` and `SASL_SSL` are not served yet.",
)
EARLY_START_LISTENERS: Final[Setting[tuple[str, ...]]] = Setting(
    "early.start.listeners",
    list_of(),
    None,
    "Listeners",
    "Listeners that do not wait until the authorizer has its ACLs: there it must decide from the start. "
    "Every other listener is bound when the authorizer says that it can decide for it. Without it, those of "
    "`controller.listener.names`.",
)
CONTROLLER_LISTENER_NAMES: Final[Setting[tuple[str, ...]]] = Setting(
    "controller.listener.names",
    list_of(),
    (),
    "Listeners",
    "The admin listeners: those of `listeners` that answer about this node itself, as Kafka's controllers do "
    "(features, quorum, its own settings, and requests in an Envelope), and lead nowhere upstream.",
)
BROKER_PORT_START: Final = Setting(
    "kustos.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "Only after `listener.name.<listener>.`: the upstream broker with node id N is reached at this port plus "
    "N, on the host of the listener. Without it, `kustos.gateway.broker.port.start`.",
    per_listener=True,
)
GATEWAY_BROKER_PORT_START: Final = Setting(
    "kustos.gateway.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "The first broker port of a listener that has none of its own. Without it, the port after the "
    "listener's.",
)
BROKER_PORT_COUNT: Final = Setting(
    "kustos.gateway.broker.port.count",
    whole_number(1, 10_000),
    100,
    "Listeners",
    "How many broker ports each listener has: the highest node id upstream, plus one. The ports of "
    "listeners must not overlap.",
)

ENABLED_MECHANISMS: Final = Setting(
    "sasl.enabled.mechanisms",
    list_of(*MECHANISMS),
    ("GSSAPI",),
    "SASL",
    "The SASL mechanisms that a listener offers: `GSSAPI` (Kafka's default; it needs `kustos[gssapi]` and a "
    "keytab), `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`. `OAUTHBEARER` is not served yet; with it a node "
    "does not start.",
    per_listener=True,
)
JAAS_CONFIG: Final = Setting(
    "sasl.jaas.config",
    TEXT,
    None,
    "SASL",
    "The login module of a mechanism; for `PLAIN` it holds the users, for `GSSAPI` it names the keytab. It "
    "must be given for one mechanism, "
    "as `listener.name.<listener>.<mechanism>.sasl.jaas.config` or `<mechanism>.sasl.jaas.config`; "
    "without a mechanism it is ignored, as in Kafka. The SCRAM mechanisms need none here.",
    secret=True,
    per_listener=True,
    per_mechanism=True,
)
MAX_REAUTH_MS: Final = Setting(
    "connections.max.reauth.ms",
    whole_number(0, INT64_MAX, "milliseconds"),
    0,
    "SASL",
    "How long a session may last until the client must authenticate again (KIP-368); 0 sets no limit.",
    per_listener=True,
    per_mechanism=True,
)
FAILED_AUTHENTICATION_DELAY_MS: Final = Setting(
    "connection.failed.authentication.delay.ms",
    whole_number(0, INT32_MAX, "milliseconds"),
    100,
    "SASL",
    "How long the answer to a failed login is held back. Must be below `connections.max.idle.ms`.",
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
    "A connection that nothing came from for so long is closed.",
)
MAX_CONNECTIONS: Final = Setting(
    "max.connections", _COUNT, INT32_MAX, "Limits", "How many connections the node holds."
)
MAX_CONNECTIONS_PER_IP: Final = Setting(
    "max.connections.per.ip", _COUNT, INT32_MAX, "Limits", "How many connections one address may hold."
)
ANSWERS_MAX_BYTES: Final = Setting(
    "kustos.gateway.answers.max.bytes",
    whole_number(0, INT64_MAX, "bytes"),
    answer_budget.ANSWERS_MAX_BYTES,
    "Limits",
    "How much of answers the node holds for clients that have not taken them; each worker has an equal "
    "part. A Fetch gets a fourth of what is free at most, and 1 MiB at the least: its `max_bytes` is "
    "lowered to that.",
)

AUTHORIZER_CLASS: Final = Setting(
    "authorizer.class.name",
    ANY_TEXT,
    STANDARD_AUTHORIZER,
    "Authorization",
    "Who decides: Kafka's own name of its authorizer (or of the one before it, "
    "`kafka.security.authorizer.AclAuthorizer`, which means the same here; or of its first, "
    "`kafka.security.auth.SimpleAclAuthorizer`), a Python class as `package.module.Class`, or the name "
    "of an entry point in the group `kustos.authorizers`. A class of your own is handed every key of this "
    "file but the secrets of kustos. In Kafka an empty value switches authorization off; here that also "
    "needs `kustos.authorization.mode=off`, else the node does not start.",
)
AUTHORIZATION_MODE: Final = Setting(
    "kustos.authorization.mode",
    one_of("standard", "off"),
    "standard",
    "Authorization",
    "`off` lets every client do everything.",
)
SUPER_USERS: Final = Setting(
    "super.users",
    ANY_TEXT,
    "",
    "Authorization",
    "Principals that may do everything: `User:name`, with semicolons between them.",
)
ALLOW_EVERYONE: Final = Setting(
    "allow.everyone.if.no.acl.found",
    BOOLEAN,
    False,
    "Authorization",
    "Whether a resource that no ACL names is open to all.",
)
LEGACY_ACL_FILE: Final = Setting(
    "kustos.legacy.acl.file",
    TEXT,
    None,
    "Authorization",
    "Where `kafka.security.auth.SimpleAclAuthorizer` keeps its ACLs; it needs one.",
)
LEGACY_RULES: Final = Setting(
    "kustos.legacy.rules",
    one_of("released", "kip-11"),
    "released",
    "Authorization",
    "Whose decisions `SimpleAclAuthorizer` takes: those of Kafka 2.8, or of the draft.",
)

BOOTSTRAP_SERVERS: Final = Setting(
    UPSTREAM_PREFIX + "bootstrap.servers",
    TEXT,
    None,
    "Upstream",
    "Brokers of the cluster that is guarded: `host:port`, with commas between them.",
    required=True,
)
UPSTREAM_PROTOCOL: Final = Setting(
    UPSTREAM_PREFIX + "security.protocol",
    one_of("PLAINTEXT", "SASL_PLAINTEXT"),
    "PLAINTEXT",
    "Upstream",
    "How to speak to it.",
)
UPSTREAM_MECHANISM: Final = Setting(
    UPSTREAM_PREFIX + "sasl.mechanism",
    one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    None,
    "Upstream",
    "How to log in there; needed for `SASL_PLAINTEXT`.",
)
UPSTREAM_JAAS: Final = Setting(
    UPSTREAM_PREFIX + "sasl.jaas.config",
    TEXT,
    None,
    "Upstream",
    "The login module with user name and password; needed for `SASL_PLAINTEXT`.",
    secret=True,
)
UPSTREAM_TIMEOUT_MS: Final = Setting(
    UPSTREAM_PREFIX + "request.timeout.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    30_000,
    "Upstream",
    "How long an answer to a question of the gateway's own may take.",
)
UPSTREAM_METADATA_MAX_AGE_MS: Final = Setting(
    UPSTREAM_PREFIX + "metadata.max.age.ms",
    whole_number(1, INT32_MAX, "milliseconds"),
    300_000,
    "Upstream",
    "How often it is asked which brokers there are.",
)

HTTP_LISTENER: Final[Setting[NodeAddress]] = Setting(
    "kustos.http.listener",
    BIND_ADDRESS,
    None,
    "HTTP",
    "Where `/metrics`, `/health` and `/ready` are served: `host:port`. Nowhere without it. It asks nobody "
    "who they are, so it belongs on an address that only operators reach.",
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    *(value for value in tuple(globals().values()) if isinstance(value, Setting)),
    *LOGIN_SETTINGS,
    *PRINCIPAL_SETTINGS,
    *AUDIT_SETTINGS,
    *LOG_SETTINGS,
    *QUORUM_SETTINGS,
    *WORKER_SETTINGS,
)
BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
