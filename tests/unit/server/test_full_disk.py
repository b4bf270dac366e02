"""A full disk: every kind of change gets the same answer, and clients stay connected."""

from pathlib import Path
from typing import Any

import pytest

from kustos.wire import Message
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import admin_node

UNKNOWN_SERVER_ERROR = -1
CREATION = {
    "resource_type": 2,
    "resource_name": "topic",
    "resource_pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
EVERY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
UPSERTION = {
    "name": "alice",
    "mechanism": 1,
    "iterations": 4096,
    "salt": b"salt",
    "salted_password": b"p" * 32,
}
SETTING = {"name": "super.users", "config_operation": 0, "value": "User:admin;User:ops"}
CHANGES: dict[ApiKey, tuple[int, dict[str, Any]]] = {
    ApiKey.CREATE_ACLS: (3, {"creations": [CREATION, CREATION]}),
    ApiKey.DELETE_ACLS: (3, {"filters": [EVERY_ACL]}),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, {"deletions": [], "upsertions": [UPSERTION]}),
    ApiKey.CREATE_DELEGATION_TOKEN: (3, {"renewers": [], "max_lifetime": -1}),
    ApiKey.RENEW_DELEGATION_TOKEN: (2, {"hmac": b"h", "renew_period": 1}),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (2, {"hmac": b"h", "expiry_time_period": 1}),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        1,
        {"resources": [{"resource_type": 4, "resource_name": "", "configs": [SETTING]}]},
    ),
    ApiKey.UPDATE_FEATURES: (
        2,
        {"feature_updates": [{"feature": "metadata.version", "max_version_level": 33, "upgrade_type": 1}]},
    ),
}
"""A change by each API that there is, with its version."""


def codes(answer: Message) -> set[int]:
    """Return every error code of an answer and its items."""
    found = {answer.error_code} if "error_code" in answer.FIELDS else set()
    lists = [name for name in answer.FIELDS if isinstance(getattr(answer, name), list)]
    return found.union(*(codes(item) for name in lists for item in getattr(answer, name)))


async def test_every_change_is_answered_alike_and_the_metrics_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "no space left on device")

    async with admin_node(tmp_path, metadata_version=30, delegation_token_secret_key="secret") as made:
        talker = await made.talk("admin")
        assert "kustos_metadata_takes_changes 1.0" in made.node.metrics.text().decode()
        with monkeypatch.context() as patched:
            patched.setattr("kustos.runtime.storage.os.fsync", fail)
            # the first one finds out, the others are told
            for api, (version, fields) in CHANGES.items():
                assert codes(await talker.ask(api, version, **fields)) == {UNKNOWN_SERVER_ERROR}, api
        assert "kustos_metadata_takes_changes 0.0" in made.node.metrics.text().decode()
        described = await talker.ask(ApiKey.DESCRIBE_ACLS, 3, **EVERY_ACL)
        assert described.error_code == 0
        assert "topic" not in [each.resource_name for each in described.resources]


@pytest.mark.parametrize(
    "first", sorted(CHANGES.keys() - {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN})
)
async def test_a_change_that_meets_the_full_disk_first_is_answered_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: ApiKey
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "no space left on device")

    async with admin_node(tmp_path, metadata_version=30, delegation_token_secret_key="secret") as made:
        talker = await made.talk("admin")
        version, fields = CHANGES[first]
        with monkeypatch.context() as patched:
            patched.setattr("kustos.runtime.storage.os.fsync", fail)
            assert codes(await talker.ask(first, version, **fields)) == {UNKNOWN_SERVER_ERROR}
