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
    opened: dict[str, AuditSink] = {}
    try:
        for name in settings.sinks:
            opened[name] = await _open(name, settings, upstream, events)
    except BaseException:
        for sink in opened.values():
            await sink.close()
        raise
    return list(opened.values())


async def _open(
    name: str, settings: AuditSettings, upstream: ClientSettings, events: AuditEvents
) -> AuditSink:
    if name == "json" and settings.json_directory is not None:
        return await JsonFilesSink.open(
            settings.json_directory,
            events,
            max_bytes=settings.json_max_bytes,
            max_files=settings.json_max_files,
        )
    if name == "log4j" and settings.log4j_file is not None:
        return await KafkaLinesSink.open(settings.log4j_file, settings.log4j_level)
    if name == "kafka" and settings.kafka_topic is not None:
        sink = KafkaTopicSink(
            settings.kafka_topic,
            events,
            upstream.bootstrap_servers,
            lambda address: connect(address, upstream),
            upstream.limits.request_timeout_ms,
        )
        return await sink.open()
    raise AuditSinkError(f"`kustos.audit.sinks` has `{name}`, but not all that it needs is set")
