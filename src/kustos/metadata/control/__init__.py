"""Control: requests to change the metadata become records, or errors; nothing is written here."""

from kustos.metadata.control.acls import (
    AclCreateResult,
    AclDeleteResult,
    codes_error,
    create_acls,
    delete_acls,
    describe_acls,
    filter_error,
    new_acl_error,
    texts_error,
)
from kustos.metadata.control.hosts import host_error
from kustos.metadata.control.results import MAX_RECORDS_PER_USER_OPERATION, ApiError, ControlResult
from kustos.metadata.control.scram import (
    ScramAlterResult,
    ScramCredentialInfo,
    ScramDeletion,
    ScramDescribeResult,
    ScramUpsertion,
    alter_scram,
    describe_scram,
)

__all__ = [
    "MAX_RECORDS_PER_USER_OPERATION",
    "AclCreateResult",
    "AclDeleteResult",
    "ApiError",
    "ControlResult",
    "ScramAlterResult",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramDescribeResult",
    "ScramUpsertion",
    "alter_scram",
    "codes_error",
    "create_acls",
    "delete_acls",
    "describe_acls",
    "describe_scram",
    "filter_error",
    "host_error",
    "new_acl_error",
    "texts_error",
]
