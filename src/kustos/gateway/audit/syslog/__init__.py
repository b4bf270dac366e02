"""Audit events over syslog: messages of RFC 5424, the channels to a receiver, and the sink that sends
them."""

from kustos.gateway.audit.syslog.messages import FACILITIES, SyslogMessages
from kustos.gateway.audit.syslog.sink import SyslogSink
from kustos.gateway.audit.syslog.transports import SyslogReceiver, SyslogTransport, parse_receiver

__all__ = [
    "FACILITIES",
    "SyslogMessages",
    "SyslogReceiver",
    "SyslogSink",
    "SyslogTransport",
    "parse_receiver",
]
