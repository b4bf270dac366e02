"""Delegation tokens that tests of the metadata share."""

from dataclasses import replace
from uuid import UUID

from kustos.metadata.records import AccessControlEntryRecord, DelegationTokenRecord

TOKEN_ID = "AKVSuQ5WSpWpmdttEIhTSA"
TOKEN = DelegationTokenRecord(
    owner="User:b",
    requester="User:a",
    renewers=("User:c", "User:d"),
    issue_timestamp_ms=5,
    max_timestamp_ms=1005,
    expiration_timestamp_ms=105,
    token_id=TOKEN_ID,
)
ACL = AccessControlEntryRecord(UUID(int=1), 2, "foo", 3, "User:bob", "*", 3, 3)


def renewed(token: DelegationTokenRecord, expiration_timestamp_ms: int) -> DelegationTokenRecord:
    return replace(token, expiration_timestamp_ms=expiration_timestamp_ms)
