"""The settings of the audit log."""

from dataclasses import replace
from typing import Final

from kustos.client import ClientTls, SettingsError
from kustos.gateway.audit import AuditSettings, SyslogReceiver, SyslogTransport
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.tls import client_tls_declarations

SYSLOG_PREFIX: Final = "kustos.audit.syslog."
SYSLOG_TLS: Final = client_tls_declarations(SYSLOG_PREFIX, "Audit")

_NEEDED_BY_SINK: Final = {
    "json": "kustos.audit.json.dir",
    "kafka": "kustos.audit.kafka.topic",
    "log4j": "kustos.audit.log4j.file",
    "syslog": "kustos.audit.syslog.receiver",
}


def audit_settings(given: GivenSettings) -> AuditSettings:
    """Return the settings; raise `SettingsError` for a sink with a missing key or unusable stores."""
    settings = AuditSettings(**given.fields(AuditSettings))
    for sink in settings.sinks:
        if (needed := _NEEDED_BY_SINK[sink]) not in given.values:
            raise SettingsError(f"`{needed}` is not set, `{sink}` in `kustos.audit.sinks` needs it")
    if not settings.sinks:
        given.warnings.append("`kustos.audit.sinks` names no sink: no decision is recorded")
    if "syslog" not in settings.sinks:
        return settings
    return replace(settings, syslog_tls=_syslog_tls(given, settings.syslog_receiver))


def _syslog_tls(given: GivenSettings, receiver: SyslogReceiver | None) -> ClientTls | None:
    """Return the TLS of the syslog receiver, None without; raise `SettingsError` for unusable stores."""
    if receiver is None or receiver.transport is not SyslogTransport.TLS:
        return None
    prefix = SYSLOG_PREFIX
    try:
        tls = ClientTls.from_properties(
            {key.removeprefix(prefix): text for key, text in given.texts.items() if key.startswith(prefix)}
        )
        tls.context()
    except SettingsError as error:
        raise SettingsError(f"in the settings that begin with `{prefix}`: {error}") from None
    return tls
