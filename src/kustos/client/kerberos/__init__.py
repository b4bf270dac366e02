"""Our identity in Kerberos: a client's settings of GSSAPI, and tickets, renewed before they end."""

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
