"""Opens the sinks that the settings name."""

from dataclasses import dataclass
from pathlib import Path

from kustos.authorizer.audit import AuditFormat
from kustos.client import ClientSettings, ClientTls, connect
from kustos.gateway.audit.entries import AuditEvents
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.lanes import AuditSink, AuditSinkError, OnFull
from kustos.gateway.audit.log4j import KafkaLinesSink
from kustos.gateway.audit.syslog import SyslogMessages, SyslogReceiver, SyslogSink
from kustos.gateway.audit.topic import KafkaTopicSink


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The `kustos.audit.*` keys. `sinks` names those in use, whose other fields are then set."""

    sinks: tuple[str, ...] = ()
    json_directory: Path | None = None
    json_max_bytes: int = 104_857_600
    json_max_files: int = 1000
    json_roll_ms: int = 3_600_000
    json_format: AuditFormat = AuditFormat.KUSTOS
    kafka_topic: str | None = None
    kafka_format: AuditFormat = AuditFormat.KUSTOS
    syslog_receiver: SyslogReceiver | None = None
    syslog_format: AuditFormat = AuditFormat.KUSTOS
    syslog_facility: str = "authpriv"
    syslog_max_bytes: int = 8192
    syslog_tls: ClientTls | None = None
    log4j_file: Path | None = None
    log4j_level: str = "INFO"
    queue_max_events: int = 65_536
    on_full: OnFull = OnFull.BLOCK
    allowed_bytes_per_hour: int = 2**30
    denied_bytes_per_hour: int = 104_857_600


async def open_audit_sinks(
    settings: AuditSettings, upstream: ClientSettings, events: AuditEvents
) -> list[AuditSink]:
    """Return the sinks, each opened; raise `AuditSinkError` if one cannot be used, and close the others."""
    opened: list[AuditSink] = []
    try:
        for name in settings.sinks:
            sink = _sink(name, settings, upstream, events)
            await sink.open()
            opened.append(sink)
    except BaseException:
        for sink in opened:
            await sink.close()
        raise
    return opened


def _sink(name: str, settings: AuditSettings, upstream: ClientSettings, events: AuditEvents) -> AuditSink:
    if name == "json" and settings.json_directory is not None:
        return JsonFilesSink(
            settings.json_directory,
            events,
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
            events,
            upstream.bootstrap_servers,
            lambda address: connect(address, upstream),
            upstream.limits.request_timeout_ms,
            settings.kafka_format,
        )
    if name == "syslog" and settings.syslog_receiver is not None:
        messages = SyslogMessages.of_host(
            events, settings.syslog_facility, settings.syslog_format, settings.syslog_max_bytes
        )
        tls = settings.syslog_tls
        return SyslogSink(settings.syslog_receiver, messages, None if tls is None else tls.context)
    raise AuditSinkError(f"`kustos.audit.sinks` has `{name}`, but not all that it needs is set")
