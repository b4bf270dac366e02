"""Administration of a cluster through Kafka's APIs, with values: ACLs, SCRAM users, features, settings."""

from kustos.client.admin.acl_messages import creation_fields, filter_fields, matching_binding
from kustos.client.admin.client import AdminClient, CredentialDeletion, DescribedScramUser, PasswordUpsertion

__all__ = [
    "AdminClient",
    "CredentialDeletion",
    "DescribedScramUser",
    "PasswordUpsertion",
    "creation_fields",
    "filter_fields",
    "matching_binding",
]
