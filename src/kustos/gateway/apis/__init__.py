"""The APIs that kustos answers itself: ACLs, SCRAM users, delegation tokens, and ApiVersions."""

from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.audited_changes import AuditedApis, reloaded_settings
from kustos.gateway.apis.custom_authorizer import (
    CustomContextAuthorizer,
    UnusedDecider,
    discard,
    words_of_others,
)
from kustos.gateway.apis.local import MetadataApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.apis.shared import Described, SharedApis
from kustos.gateway.apis.tokens import TokenSweeper

__all__ = [
    "ALTER_ACLS",
    "AclApis",
    "AuditedApis",
    "CustomContextAuthorizer",
    "DelayedFuturePurgatory",
    "Described",
    "MetadataApis",
    "SharedApis",
    "TokenSweeper",
    "UnusedDecider",
    "discard",
    "reloaded_settings",
    "words_of_others",
]
