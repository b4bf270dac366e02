"""The settings of the audit log."""

from typing import Any, Final

from kustos.authorizer.audit import AuditFormat
from kustos.gateway.audit import FACILITIES, parse_receiver
from kustos.server.settings.kinds import (
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
from kustos.server.settings.table.tls import client_tls_settings

AUDIT_SINKS: Final = Setting(
    "kustos.audit.sinks",
    list_of("json", "kafka", "log4j", "syslog"),
    (),
    "Audit",
    "Where each decision is written: files of JSON lines, a topic upstream, a file like that of Kafka's "
    "`kafka.authorizer.logger`, a receiver of syslog.",
)
AUDIT_JSON_DIR: Final = Setting(
    "kustos.audit.json.dir", PATH, None, "Audit", "The directory of the JSON files; needed for `json`."
)
AUDIT_JSON_MAX_BYTES: Final = Setting(
    "kustos.audit.json.max.bytes",
    whole_number(1024, INT64_MAX, "bytes"),
    104_857_600,
    "Audit",
    "The size at which kustos closes a file and begins the next one.",
)
AUDIT_JSON_MAX_FILES: Final = Setting(
    "kustos.audit.json.max.files",
    whole_number(1, 1_000_000),
    1000,
    "Audit",
    "How many closed files kustos keeps; it deletes the oldest.",
)
AUDIT_JSON_ROLL_MS: Final = Setting(
    "kustos.audit.json.roll.ms",
    whole_number(100, INT64_MAX, "milliseconds"),
    3_600_000,
    "Audit",
    "The age at which kustos closes a file, however small it is. The pipeline reads closed files only.",
)
_FORMATS: Final = one_of(*(each.value for each in AuditFormat))
AUDIT_JSON_FORMAT: Final = Setting(
    "kustos.audit.json.format",
    _FORMATS,
    "kustos",
    "Audit",
    "The format of the lines: kustos' own, which its pipeline and commands read, CloudEvents 1.0 in JSON, or "
    "OCSF.",
)
AUDIT_KAFKA_FORMAT: Final = Setting(
    "kustos.audit.kafka.format",
    _FORMATS,
    "kustos",
    "Audit",
    "The format of the records' values, as `kustos.audit.json.format`.",
)
AUDIT_KAFKA_TOPIC: Final = Setting(
    "kustos.audit.kafka.topic", TEXT, None, "Audit", "The topic upstream; needed for `kafka`. It must exist."
)
SYSLOG_PREFIX: Final = "kustos.audit.syslog."
AUDIT_SYSLOG_RECEIVER: Final = Setting(
    SYSLOG_PREFIX + "receiver",
    Kind(
        "string",
        "`tcp://host:port`, `tls://host:port`, `udp://host:port` or `unix:///path/of/socket`",
        parse_receiver,
    ),
    None,
    "Audit",
    "The receiver of syslog (RFC 5424); needed for `syslog`. Over `tcp` and `tls` messages are framed by "
    "octet counting, the others send datagrams.",
)
AUDIT_SYSLOG_FORMAT: Final = Setting(
    SYSLOG_PREFIX + "format",
    _FORMATS,
    "kustos",
    "Audit",
    "The format of the JSON in messages, as `kustos.audit.json.format`.",
)
AUDIT_SYSLOG_FACILITY: Final = Setting(
    SYSLOG_PREFIX + "facility",
    one_of(*FACILITIES),
    "authpriv",
    "Audit",
    "The facility of messages.",
)
AUDIT_SYSLOG_MAX_BYTES: Final = Setting(
    SYSLOG_PREFIX + "max.bytes",
    whole_number(8192, 65_507, "bytes"),
    8192,
    "Audit",
    "The largest message; in larger ones long texts are cut. Many receivers take no more than 8 KiB.",
)
SYSLOG_TLS: Final = client_tls_settings(SYSLOG_PREFIX, "Audit")
AUDIT_LOG4J_FILE: Final = Setting(
    "kustos.audit.log4j.file", PATH, None, "Audit", "The file of Kafka's lines; needed for `log4j`."
)
AUDIT_LOG4J_LEVEL: Final = Setting(
    "kustos.audit.log4j.level",
    one_of("INFO", "DEBUG", "TRACE"),
    "INFO",
    "Audit",
    "`INFO` shows denials, `DEBUG` also approvals, `TRACE` everything. Applies to this file only.",
)
AUDIT_QUEUE_MAX_EVENTS: Final = Setting(
    "kustos.audit.queue.max.events",
    whole_number(1, 10_000_000),
    65_536,
    "Audit",
    "How many decisions may wait to be written.",
)
AUDIT_ON_FULL: Final = Setting(
    "kustos.audit.on.full",
    one_of("block", "deny", "drop"),
    "block",
    "Audit",
    "When the queue is full or a sink fails: `block` serves no further request until the sink writes again, "
    "`deny` refuses each with UNKNOWN_SERVER_ERROR until then, `drop` goes on and counts the lost events.",
)
AUDIT_ALLOWED_MAX_BYTES_PER_HOUR: Final = Setting(
    "kustos.audit.allowed.max.bytes.per.hour",
    whole_number(0, INT64_MAX, "bytes"),
    1_073_741_824,
    "Audit",
    "The limit for each principal, in each process, on events of allowed READ, WRITE, DESCRIBE, "
    "DESCRIBE_CONFIGS and IDEMPOTENT_WRITE; 0: the first of a minute only. Beyond it equal decisions on one "
    "resource become one event a minute, with their number.",
    takes_effect=TakesEffect.RELOAD,
)
AUDIT_DENIED_MAX_BYTES_PER_HOUR: Final = Setting(
    "kustos.audit.denied.max.bytes.per.hour",
    whole_number(0, INT64_MAX, "bytes"),
    104_857_600,
    "Audit",
    "The limit for each principal, in each process, on events of denials and of names left out of lists. "
    "Beyond it equal decisions become one event a minute. Logins of the principal have a second limit of the "
    "same size; beyond it equal logins become one event in five minutes.",
)

AUDIT_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    *(value for value in tuple(globals().values()) if isinstance(value, Setting)),
    *SYSLOG_TLS,
)
