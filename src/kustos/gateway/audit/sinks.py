"""Opens the sinks that the settings name."""

from dataclasses import dataclass
from pathlib import Path

from kustos.authorizer.audit import AuditFormat
from kustos.client import ClientSettings, ClientTls, connect
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log4j import KafkaLinesSink
from kustos.gateway.audit.sink_writer import AuditSink, OnFull
from kustos.gateway.audit.syslog import (
    FACILITIES,
    SyslogMessages,
    SyslogReceiver,
    SyslogSink,
    parse_receiver,
)
from kustos.gateway.audit.topic import KafkaTopicSink
from kustos.settings import (
    INT64_MAX,
    PATH,
    TEXT,
    Kind,
    Setting,
    TakesEffect,
    list_of,
    member_of,
    one_of,
    whole_number,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The `kustos.audit.*` keys. `sinks` names the sinks in use; the fields of these sinks are set."""

    sinks: tuple[str, ...] = Setting(
        "kustos.audit.sinks",
        list_of("json", "kafka", "log4j", "syslog"),
        (),
        "Audit",
        "Where each decision is written: files of JSON lines, a topic upstream, a file like that of Kafka's "
        "`kafka.authorizer.logger`, a receiver of syslog.",
    ).field()
    json_directory: Path | None = Setting(
        "kustos.audit.json.dir",
        PATH,
        None,
        "Audit",
        "The directory of the JSON files; needed for `json`.",
    ).optional_field()
    json_max_bytes: int = Setting(
        "kustos.audit.json.max.bytes",
        whole_number(1024, INT64_MAX, "bytes"),
        104_857_600,
        "Audit",
        "The size at which kustos closes a file and begins the next one.",
    ).field()
    json_max_files: int = Setting(
        "kustos.audit.json.max.files",
        whole_number(1, 1_000_000),
        1000,
        "Audit",
        "How many closed files kustos keeps; it deletes the oldest.",
    ).field()
    json_roll_ms: int = Setting(
        "kustos.audit.json.roll.ms",
        whole_number(100, INT64_MAX, "milliseconds"),
        3_600_000,
        "Audit",
        "The age at which kustos closes a file, however small it is. The pipeline reads closed files only.",
    ).field()
    json_format: AuditFormat = Setting(
        "kustos.audit.json.format",
        member_of(AuditFormat),
        AuditFormat.KUSTOS,
        "Audit",
        "The format of the lines: kustos' own, which its pipeline and commands read, CloudEvents 1.0 in "
        "JSON, or OCSF.",
        since="0.2.0",
    ).field()
    kafka_format: AuditFormat = Setting(
        "kustos.audit.kafka.format",
        member_of(AuditFormat),
        AuditFormat.KUSTOS,
        "Audit",
        "The format of the records' values, as `kustos.audit.json.format`.",
        since="0.2.0",
    ).field()
    kafka_topic: str | None = Setting(
        "kustos.audit.kafka.topic",
        TEXT,
        None,
        "Audit",
        "The topic upstream; needed for `kafka`. It must exist.",
    ).optional_field()
    syslog_receiver: SyslogReceiver | None = Setting(
        "kustos.audit.syslog.receiver",
        Kind(
            "string",
            "`tcp://host:port`, `tls://host:port`, `udp://host:port` or `unix:///path/of/socket`",
            parse_receiver,
        ),
        None,
        "Audit",
        "The receiver of syslog (RFC 5424); needed for `syslog`. Over `tcp` and `tls` messages are framed by "
        "octet counting, the others send datagrams.",
        since="0.2.0",
    ).optional_field()
    syslog_format: AuditFormat = Setting(
        "kustos.audit.syslog.format",
        member_of(AuditFormat),
        AuditFormat.KUSTOS,
        "Audit",
        "The format of the JSON in messages, as `kustos.audit.json.format`.",
        since="0.2.0",
    ).field()
    syslog_facility: str = Setting(
        "kustos.audit.syslog.facility",
        one_of(*FACILITIES),
        "authpriv",
        "Audit",
        "The facility of messages.",
        since="0.2.0",
    ).field()
    syslog_max_bytes: int = Setting(
        "kustos.audit.syslog.max.bytes",
        whole_number(8192, 65_507, "bytes"),
        8192,
        "Audit",
        "The largest message; in larger ones long texts are cut. Many receivers take no more than 8 KiB.",
        since="0.2.0",
    ).field()
    syslog_tls: ClientTls | None = None
    log4j_file: Path | None = Setting(
        "kustos.audit.log4j.file",
        PATH,
        None,
        "Audit",
        "The file of Kafka's lines; needed for `log4j`.",
    ).optional_field()
    log4j_level: str = Setting(
        "kustos.audit.log4j.level",
        one_of("INFO", "DEBUG", "TRACE"),
        "INFO",
        "Audit",
        "`INFO` shows denials, `DEBUG` also approvals, `TRACE` everything. Applies to this file only.",
    ).field()
    queue_max_events: int = Setting(
        "kustos.audit.queue.max.events",
        whole_number(1, 10_000_000),
        65_536,
        "Audit",
        "How many decisions may wait to be written.",
    ).field()
    on_full: OnFull = Setting(
        "kustos.audit.on.full",
        member_of(OnFull),
        OnFull.BLOCK,
        "Audit",
        "When the queue is full or a sink fails: `block` serves no further request until the sink writes "
        "again, `deny` refuses each with UNKNOWN_SERVER_ERROR until then, `drop` goes on and counts the lost "
        "events.",
    ).field()
    allowed_bytes_per_hour: int = Setting(
        "kustos.audit.allowed.max.bytes.per.hour",
        whole_number(0, INT64_MAX, "bytes"),
        1_073_741_824,
        "Audit",
        "The limit for each principal, in each process, on events of allowed READ, WRITE, DESCRIBE, "
        "DESCRIBE_CONFIGS and IDEMPOTENT_WRITE; 0: the first of a minute only. Beyond it equal decisions on "
        "one resource become one event a minute, with their number.",
        takes_effect=TakesEffect.RELOAD,
        since="0.2.0",
    ).field()
    denied_bytes_per_hour: int = Setting(
        "kustos.audit.denied.max.bytes.per.hour",
        whole_number(0, INT64_MAX, "bytes"),
        104_857_600,
        "Audit",
        "The limit for each principal, in each process, on events of denials and of names left out of lists. "
        "Beyond it equal decisions become one event a minute. Logins of the principal have a second limit of "
        "the same size; beyond it equal logins become one event in five minutes.",
    ).field()


async def open_audit_sinks(settings: AuditSettings, upstream: ClientSettings) -> list[AuditSink]:
    """Return the opened sinks; if a sink cannot be used, close the others and raise `AuditSinkError`."""
    opened: list[AuditSink] = []
    try:
        for name in settings.sinks:
            sink = _sink(name, settings, upstream)
            await sink.open()
            opened.append(sink)
    except BaseException:
        for sink in opened:
            await sink.close()
        raise
    return opened


def _sink(name: str, settings: AuditSettings, upstream: ClientSettings) -> AuditSink:
    if name == "json" and settings.json_directory is not None:
        return JsonFilesSink(
            settings.json_directory,
            max_bytes=settings.json_max_bytes,
            max_files=settings.json_max_files,
            roll_ms=settings.json_roll_ms,
            line_format=settings.json_format,
        )
    if name == "log4j" and settings.log4j_file is not None:
        return KafkaLinesSink(settings.log4j_file, settings.log4j_level)
    if name == "kafka" and settings.kafka_topic is not None:
        return KafkaTopicSink(
            settings.kafka_topic,
            upstream.bootstrap_servers,
            lambda address: connect(address, upstream),
            upstream.limits.request_timeout_ms,
            settings.kafka_format,
        )
    if name == "syslog" and settings.syslog_receiver is not None:
        messages = SyslogMessages.of_host(
            settings.syslog_facility, settings.syslog_format, settings.syslog_max_bytes
        )
        tls = settings.syslog_tls
        return SyslogSink(settings.syslog_receiver, messages, None if tls is None else tls.context)
    raise AuditSinkError(f"`kustos.audit.sinks` has `{name}`, but not all that it needs is set")
