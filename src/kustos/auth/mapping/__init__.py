"""Rules that map the name in a certificate or a Kerberos ticket to the name of a user."""

from kustos.auth.mapping.certificate_rules import ssl_group_mapper, ssl_principal_mapper
from kustos.auth.mapping.distinguished_names import fields_of_der, rfc2253_of_der
from kustos.auth.mapping.kerberos import KerberosName, kerberos_shortener
from kustos.auth.mapping.replacements import DEFAULT_RULE, MAX_NAME_CHARACTERS

__all__ = [
    "DEFAULT_RULE",
    "MAX_NAME_CHARACTERS",
    "KerberosName",
    "fields_of_der",
    "kerberos_shortener",
    "rfc2253_of_der",
    "ssl_group_mapper",
    "ssl_principal_mapper",
]
