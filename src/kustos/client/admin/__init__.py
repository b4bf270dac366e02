"""Administration of a cluster by its own APIs: ACLs, SCRAM users, features, settings, as values."""

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
