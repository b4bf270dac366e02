"""The client's Kerberos identity: settings of GSSAPI, and tickets that are renewed before they expire."""

from kustos.client.kerberos.settings import LOGIN_MODULE, KerberosClientSettings, RenewRules
from kustos.client.kerberos.tickets import TicketSource, host_of, ticket_source

__all__ = [
    "LOGIN_MODULE",
    "KerberosClientSettings",
    "RenewRules",
    "TicketSource",
    "host_of",
    "ticket_source",
]
