"""Opens the sinks that the settings name."""

from kustos.client import ClientSettings, connect
from kustos.gateway.audit_entries import AuditEvents
from kustos.gateway.audit_json import JsonFilesSink
from kustos.gateway.audit_log import AuditSink, AuditSinkError
from kustos.gateway.audit_log4j import KafkaLinesSink
from kustos.gateway.audit_settings import AuditSettings
from kustos.gateway.audit_topic import KafkaTopicSink


async def open_audit_sinks(
    settings: AuditSettings, upstream: ClientSettings, events: AuditEvents
) -> list[AuditSink]:
    """Return the sinks, each tried; raise `AuditSinkError` if one cannot be used, and close the others."""
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
        )
    raise AuditSinkError(f"`kustos.audit.sinks` has `{name}`, but not all that it needs is set")
