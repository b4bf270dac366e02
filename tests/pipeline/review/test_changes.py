"""What is to be deleted after a review, as Kafka's own tools read it; and the review as CSV."""

import csv
import io
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

import kustos.pipeline.review
from kustos.acl.forms import AclForm, read_acls
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.errors import ReviewError
from kustos.pipeline.review.changes import Flipped, changes_of
from kustos.pipeline.review.commands import AclAction, kafka_acls_commands
from kustos.pipeline.review.csv_form import COLUMNS, instant_text, review_csv
from kustos.pipeline.schemas import ACCESS_REVIEW_SCHEMA
from kustos.pipeline.spreadsheet import BYTE_ORDER_MARK
from testkit.review_rows import acl
from tests.pipeline.review.test_signoff import ACLS, READ_PAY, ROWS, WRITE_OLD, decided, document, row_id


def test_revoked_rows_ask_for_their_acls_unless_others_need_them() -> None:
    made = decided(document(), old="revoke", in_="revoke", root="revoke")
    changes = changes_of(made, ACLS)
    assert changes.remove == (WRITE_OLD,)
    (contested,) = changes.contested
    assert contested.binding == READ_PAY
    assert contested.revoke == (row_id(made, "User:alice", "pay.in"),)
    assert contested.other == (row_id(made, "User:alice", "pay.out"),)
    assert changes.beyond_acls == (row_id(made, "User:root", "*"),)
    assert changes.unexpected is None
    assert [one.binding for one in read_acls(changes.to_yaml(), AclForm.YAML, "t")] == [WRITE_OLD]
    both = changes_of(decided(document(), in_="revoke", out="revoke"))
    assert (both.remove, both.contested) == ((READ_PAY,), ())


def test_a_replay_tells_what_nobody_revoked() -> None:
    seen: list[AclsInForce] = []

    def replay(left: AclsInForce) -> list[Flipped]:
        seen.append(left)
        return [("User:bob", "WRITE", "TOPIC", "old"), ("User:eve", "READ", "TOPIC", None)]

    changes = changes_of(decided(document(), old="revoke"), ACLS, replay)
    assert seen[0].bindings == (READ_PAY,)
    assert seen[0].super_users == {"User:root"}
    assert changes.unexpected == (("User:eve", "READ", "TOPIC", None),)


def test_changes_of_other_acls_or_an_altered_review_are_refused() -> None:
    made = decided(document(), old="revoke")
    with pytest.raises(ReviewError, match="not those that were reviewed"):
        changes_of(made, AclsInForce.of("other", [READ_PAY]))
    made["review"]["rows"][0]["use_count"] = 77
    with pytest.raises(ReviewError, match="altered"):
        changes_of(made)


def test_a_command_names_one_acl_in_quotes() -> None:
    evil = acl("User:$(rm -rf ~)", "ALL", "GROUP", "-a'; echo", prefixed=True, host="10.0.0.0/8", deny=True)
    cluster = acl("User:CN=x, O=y", "ALTER", "CLUSTER", "kafka-cluster")
    first, second = kafka_acls_commands([evil, cluster], AclAction.REMOVE, command_config="a b")
    assert shlex.split(first) == [
        "kafka-acls.sh", "--bootstrap-server", "$BOOTSTRAP_SERVER", "--command-config", "a b",
        "--remove", "--force", "--group=-a'; echo", "--resource-pattern-type=prefixed", "--operation=All",
        "--deny-principal=User:$(rm -rf ~)", "--deny-host=10.0.0.0/8",
    ]  # fmt: skip
    assert "--cluster" in shlex.split(second)
    (added,) = kafka_acls_commands([cluster], AclAction.ADD, bootstrap_server="$(x)")
    assert shlex.split(added)[2:4] == ["$(x)", "--add"]
    assert "'$(x)'" in added
    for name in (" a", "a\n--force", "a\0"):
        with pytest.raises(ReviewError, match="cannot take"):
            kafka_acls_commands([acl("User:a", "READ", "TOPIC", name)], AclAction.ADD)


def test_csv_has_the_columns_of_the_table_and_opens_in_spreadsheets() -> None:
    rows = [ROWS[0] | {"principal": "User:=1+1", "team": "=cmd|' /C calc'!A0", "hosts": ["10.0.0.1", "a,b"]}]
    written = "".join(review_csv(rows))
    assert written.startswith(BYTE_ORDER_MARK)
    assert written.endswith("\r\n")
    header, only = csv.reader(io.StringIO(written.removeprefix(BYTE_ORDER_MARK), newline=""))
    assert tuple(header) == COLUMNS == tuple(ACCESS_REVIEW_SCHEMA.fieldNames())
    cells = dict(zip(header, only, strict=True))
    assert cells["team"] == "'=cmd|' /C calc'!A0"
    assert cells["hosts"] == "10.0.0.1; a,b"
    assert cells["granted_by"] == "ALLOW READ TOPIC PREFIXED pay. to User:alice from *"
    assert (cells["last_used"], cells["granted_since"]) == ("2026-12-01T09:00:00Z", "")
    assert cells["is_dormant"] == "true"
    assert not "".join(review_csv([], byte_order_mark=False)).startswith(BYTE_ORDER_MARK)


def test_times_are_told_in_utc() -> None:
    assert (
        instant_text(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-01T00:00:00Z"
    )
    assert instant_text(datetime(2026, 1, 1)) == instant_text(datetime(2026, 1, 1, tzinfo=UTC))  # noqa: DTZ001


def test_an_acl_that_no_form_holds_is_never_half_written() -> None:
    for unknown in (acl("User:a", "UNKNOWN", "TOPIC", "a"), acl("User:a", "CREATE_TOKENS", "TOPIC", "a")):
        with pytest.raises(ReviewError, match="use another form"):
            kafka_acls_commands([unknown], AclAction.REMOVE)


def test_who_signs_and_checks_a_review_needs_no_spark() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyarrow'] = None\n"
        "from kustos.pipeline.review import changes_of, read_review, sign_review, verify_signed_review"
        ", review_csv, sign_off, kafka_acls_commands\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="nothing called"):
        kustos.pipeline.review.nothing  # noqa: B018
