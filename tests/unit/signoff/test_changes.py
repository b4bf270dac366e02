"""What is to be deleted after a review; and the review as CSV."""

import csv
import io
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

from kustos.acl import AclBinding
from kustos.acl.forms import AclForm, read_acls, texts_of
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.schemas import ACCESS_REVIEW_SCHEMA, ENTITLEMENTS_SCHEMA
from kustos.runtime.spreadsheet import BYTE_ORDER_MARK
from kustos.signoff import SignoffError
from kustos.signoff.changes import Flipped, changes_of
from kustos.signoff.csv_form import (
    ACCESS_COLUMNS,
    COMPARED_COLUMNS,
    entitlements_csv,
    instant_text,
    review_csv,
)
from testkit.review_documents import ACLS, AT, READ_PAY, ROWS, WRITE_OLD, document
from testkit.review_rows import acl
from tests.unit.signoff.test_document import decided, row_id


def test_revoked_rows_ask_for_their_acls_unless_others_need_them() -> None:
    made = decided(document(), WRITE="revoke", READ="revoke", ALL="revoke")
    changes = changes_of(made, ACLS)
    assert changes.remove == (WRITE_OLD,)
    (contested,) = changes.contested
    assert contested.binding == READ_PAY
    assert contested.revoke == (row_id(made, "User:alice", "READ"),)
    assert contested.other == (row_id(made, "User:alice", "DESCRIBE"),)
    assert changes.beyond_acls == (row_id(made, "User:root", "ALL"),)
    assert changes.unexpected is None
    assert [one.binding for one in read_acls(changes.to_yaml(), AclForm.YAML, "t")] == [WRITE_OLD]
    both = changes_of(decided(document(), READ="revoke", DESCRIBE="revoke"))
    assert (both.remove, both.contested) == ((READ_PAY,), ())


def test_a_replay_tells_what_nobody_revoked() -> None:
    seen: list[list[AclBinding]] = []

    def replay(left: Sequence[AclBinding]) -> list[Flipped]:
        seen.append([*left])
        return [("User:alice", "READ", "TOPIC", "pay.in"), ("User:eve", "READ", "TOPIC", None)]

    made = decided(document(), READ="revoke", DESCRIBE="revoke")
    changes = changes_of(made, ACLS, replay, replay)
    assert seen[0] == [WRITE_OLD]
    assert changes.unexpected == (("User:eve", "READ", "TOPIC", None),)


def test_a_use_under_a_revoked_pattern_is_expected_to_be_lost() -> None:
    def replay(_: Sequence[AclBinding]) -> list[Flipped]:
        return [
            ("User:alice", "READ", "TOPIC", "pay.in"),
            ("User:alice", "READ", "TOPIC", None),
            ("User:alice", "DESCRIBE", "TOPIC", "pay.in"),
            ("User:alice", "READ", "TOPIC", "orders"),
            ("User:bob", "READ", "TOPIC", "pay.in"),
            ("User:alice", "READ", "GROUP", "pay.in"),
        ]

    made = decided(document(), READ="revoke", DESCRIBE="revoke")
    others = {
        ("User:alice", "READ", "TOPIC", "orders"),
        ("User:bob", "READ", "TOPIC", "pay.in"),
        ("User:alice", "READ", "GROUP", "pay.in"),
    }
    changes = changes_of(made, ACLS, replay)
    assert changes.remove == (READ_PAY,)
    assert set(changes.unexpected or ()) == others
    # what came into use since the review was not seen by who revoked its pattern
    came: Flipped = ("User:alice", "READ", "TOPIC", "pay.in")
    seen = changes_of(made, ACLS, replay, lambda left: [one for one in replay(left) if one != came])
    assert set(seen.unexpected or ()) == {*others, came}
    unused = decided(document(), WRITE="revoke")
    late: Flipped = ("User:bob", "WRITE", "TOPIC", "old")
    held_back = changes_of(unused, ACLS, lambda _: [late], lambda _: [late])
    assert held_back.unexpected == (late,), "its row said that nobody used it"


def test_changes_of_other_acls_or_an_altered_review_are_refused() -> None:
    made = decided(document(), WRITE="revoke")
    with pytest.raises(SignoffError, match="not those that were reviewed"):
        changes_of(made, AclsInForce.of("other", [READ_PAY]))
    made["review"]["rows"][0]["use_count"] = 77
    with pytest.raises(SignoffError, match="altered"):
        changes_of(made)


def test_csv_has_the_columns_of_the_table_and_opens_in_spreadsheets() -> None:
    row = dict.fromkeys(ACCESS_COLUMNS) | {
        "granted_by": [texts_of(READ_PAY)],
        "last_used": AT,
        "is_dormant": True,
    }
    evil = {"principal": "User:=1+1", "team": "=cmd|' /C calc'!A0", "hosts": ["10.0.0.1", "a,b"]}
    written = "".join(review_csv([row | evil]))
    assert written.startswith(BYTE_ORDER_MARK)
    assert written.endswith("\r\n")
    header, only = csv.reader(io.StringIO(written.removeprefix(BYTE_ORDER_MARK), newline=""))
    assert tuple(header) == ACCESS_COLUMNS == tuple(ACCESS_REVIEW_SCHEMA.fieldNames())
    cells = dict(zip(header, only, strict=True))
    assert cells["team"] == "'=cmd|' /C calc'!A0"
    assert cells["hosts"] == "10.0.0.1; a,b"
    assert cells["granted_by"] == "ALLOW READ TOPIC PREFIXED pay. to User:alice from *"
    assert (cells["last_used"], cells["granted_since"]) == ("2026-12-01T09:00:00Z", "")
    assert cells["is_dormant"] == "true"
    assert not "".join(review_csv([], byte_order_mark=False)).startswith(BYTE_ORDER_MARK)


def test_the_csv_of_entitlements_is_as_safe_and_has_all_that_the_table_has() -> None:
    denied = texts_of(acl("User:*", "READ", "TOPIC", "=pay", deny=True))
    evil = {
        "resource_name": "+pay",
        "denied_by": [denied],
        "changed": ["team", "effect"],
        "change": "CHANGED",
    }
    written = "".join(entitlements_csv([ROWS[0] | evil, ROWS[3]]))
    header, one, other = csv.reader(io.StringIO(written.removeprefix(BYTE_ORDER_MARK), newline=""))
    assert set(header) == {"cluster", *ENTITLEMENTS_SCHEMA.fieldNames(), *COMPARED_COLUMNS}
    cells = dict(zip(header, one, strict=True))
    assert cells["resource_name"] == "'+pay"
    assert cells["denied_by"] == "DENY READ TOPIC LITERAL =pay to User:* from *"
    assert (cells["changed"], cells["change"], cells["former_decision"]) == ("team; effect", "CHANGED", "")
    assert dict(zip(header, other, strict=True))["basis"] == "SuperUser"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_times_are_told_in_utc_wherever_the_driver_is(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        instant_text(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-01T00:00:00Z"
    )
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        of_spark = datetime.fromtimestamp(1_767_225_600)  # noqa: DTZ006 - as PySpark makes the times of rows
        assert instant_text(of_spark) == "2026-01-01T00:00:00Z"
    time.tzset()
