"""What a plan makes, what it leaves, and that a plan carried out is empty."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclPermissionType
from kustos.cli.migrate.kafka_source import ClusterFacts, read_snapshot, source_of, source_of_snapshot
from kustos.cli.migrate.output import document_of
from kustos.cli.migrate.plan import (
    LeftOut,
    MigrationPlan,
    MigrationSource,
    NewPassword,
    TargetState,
    make_plan,
)
from kustos.cli.reference import DOCUMENTS
from kustos.metadata.directory.format import InitialScramUser, format_directory
from kustos.metadata.errors import MetadataError, NoMetadataError
from kustos.metadata.features import CIDR_ACL_LEVEL, DEFAULT_LEVEL
from kustos.metadata.image import MetadataImage, ScramKey
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.scram import ScramCredential, ScramMechanism, scram_credential
from testkit.migration import binding
from tests.unit.metadata.token_worlds import TOKEN, renewed

SHA_256, SHA_512 = (int(each) for each in ScramMechanism)
NOW_MS = 100


def credential(password: str, iterations: int = 4096) -> ScramCredential:
    return scram_credential(ScramMechanism.SCRAM_SHA_256, password, b"salt", iterations)


ONE, OTHER = credential("one"), credential("other")
ALLOW = binding("TOPIC", "a", "LITERAL", "User:alice", "*", "READ", "ALLOW")
DENY = binding("TOPIC", "z", "PREFIXED", "User:*", "*", "ALL", "DENY")
RANGE = binding("TOPIC", "a", "LITERAL", "User:alice", "10.0.0.0/8", "READ", "DENY")


def state(
    acls: Iterable[AclBinding] = (),
    credentials: dict[ScramKey, ScramCredential] | None = None,
    *,
    level: int = DEFAULT_LEVEL,
    is_live: bool = False,
) -> TargetState:
    kept = credentials or {}
    return TargetState(
        name="target",
        metadata_version=level,
        acls=frozenset(acls),
        iterations={key: each.iterations for key, each in kept.items()},
        credentials=None if is_live else kept,
    )


def source(acls: Iterable[AclBinding] = (), **more: object) -> MigrationSource:
    return MigrationSource(name="source", acls=dict.fromkeys(acls, "/path"), **more)  # type: ignore[arg-type]


def test_denials_come_first_whatever_the_order_they_were_found_in() -> None:
    for found in ([ALLOW, DENY], [DENY, ALLOW]):
        assert make_plan(source(found), state(), now_ms=NOW_MS).acls == (DENY, ALLOW)


def test_what_is_there_is_counted_and_what_only_the_target_has_stays() -> None:
    plan = make_plan(source([ALLOW]), state([ALLOW, DENY]), now_ms=NOW_MS)
    assert (plan.source, plan.target) == ("source", "target")
    assert (plan.acls, plan.acls_present, plan.acls_only_there, plan.is_empty) == ((), 1, 1, True)


def test_kafka_decides_which_acls_may_be_made() -> None:
    refused = make_plan(source([RANGE, ALLOW]), state(), now_ms=NOW_MS)
    assert refused.acls == (ALLOW,)
    [why] = refused.refused
    assert why.where == "/path"
    assert "metadata version 4.4-IV1" in why.reason
    assert not refused.is_complete
    assert make_plan(source([RANGE]), state(level=CIDR_ACL_LEVEL), now_ms=NOW_MS).acls == (RANGE,)


@pytest.mark.parametrize(
    ("found", "kept", "is_live", "replace_users", "made", "reason"),
    [
        (ONE, None, False, False, True, None),
        (ONE, ONE, False, False, False, None),
        (ONE, OTHER, False, False, False, "another password"),
        (ONE, OTHER, False, True, True, None),
        (ONE, None, True, False, False, "takes passwords"),
        (ONE, OTHER, True, True, False, None),
        (credential("x", 4095), None, False, True, False, "Too few iterations"),
        (credential("x", 16385), OTHER, False, True, False, "Too many iterations"),
    ],
)
def test_a_users_fate(
    found: ScramCredential,
    kept: ScramCredential | None,
    is_live: bool,
    replace_users: bool,
    made: bool,
    reason: str | None,
) -> None:
    key = ("alice", SHA_256)
    target = state(credentials={key: kept} if kept else {}, is_live=is_live)
    plan = make_plan(source(credentials={key: found}), target, now_ms=NOW_MS, replace_users=replace_users)
    assert [each.credential for each in plan.credentials] == ([found] if made else [])
    assert [reason in each.reason for each in plan.new_passwords if reason] == [True] * (reason is not None)
    assert plan.credentials_present == (not made and reason is None)
    assert plan.is_complete is (reason is None)


def test_a_user_without_keys_needs_a_password_until_the_target_has_one() -> None:
    bob = NewPassword("bob", SHA_512, 4096, "no keys")
    found = source(closed=(bob,))
    assert make_plan(found, state(), now_ms=NOW_MS).new_passwords == (bob,)
    [sent] = make_plan(found, state(is_live=True), now_ms=NOW_MS).new_passwords
    assert "takes passwords" in sent.reason
    for is_live in (True, False):
        done = make_plan(found, state(credentials={("bob", SHA_512): ONE}, is_live=is_live), now_ms=NOW_MS)
        assert (done.new_passwords, done.credentials_present) == ((), 1)


def test_tokens_that_live_come_and_expired_ones_are_left() -> None:
    living, expired = renewed(TOKEN, NOW_MS + 1), renewed(TOKEN, NOW_MS)
    plan = make_plan(source(tokens={"a": living, "b": expired}), state(), now_ms=NOW_MS)
    assert plan.tokens == (living,)
    assert (plan.tokens_present, plan.is_empty) == (0, False)
    there = replace(state(), tokens={"a": TOKEN})
    again = make_plan(source(tokens={"a": living, "b": expired}), there, now_ms=NOW_MS)
    assert (again.tokens, again.tokens_present, again.is_empty) == ((), 1, True)
    gone = LeftOut("the source", "delegation tokens that have expired", 1)
    assert plan.left == (gone,)
    live = make_plan(source(tokens={"a": living, "b": expired}), state(is_live=True), now_ms=NOW_MS)
    assert live.tokens == ()
    assert live.left == (gone, LeftOut("the source", "delegation tokens, which no API takes", 1))


bindings = st.sets(
    st.builds(
        binding,
        st.sampled_from(("TOPIC", "GROUP")),
        st.sampled_from(("a", "*", "zoë €", "x/y")),
        st.sampled_from(("LITERAL", "PREFIXED")),
        st.sampled_from(("User:a", "User:*", "nobody", "a:b:c")),
        st.sampled_from(("*", "10.0.0.1", "10.0.0.0/8")),
        st.sampled_from(("READ", "ALL", "UNKNOWN")),
        st.sampled_from(("ALLOW", "DENY")),
    )
)
passwords = st.dictionaries(
    st.tuples(st.sampled_from(("a", "zoë", "")), st.sampled_from((SHA_256, SHA_512, 3))),
    st.sampled_from((ONE, OTHER, credential("x", 20000))),
)


@given(bindings, bindings, passwords, passwords, st.booleans())
def test_a_plan_that_was_carried_out_is_empty_and_nothing_is_lost_or_forgotten(
    found: set[AclBinding],
    there: set[AclBinding],
    users: dict[ScramKey, ScramCredential],
    kept: dict[ScramKey, ScramCredential],
    replace_users: bool,
) -> None:
    asked = source(found, credentials=users)
    plan = make_plan(asked, state(there, kept), now_ms=NOW_MS, replace_users=replace_users)
    assert len(plan.acls) + plan.acls_present + len(plan.refused) == len(found)
    assert len(plan.credentials) + plan.credentials_present + len(plan.new_passwords) == len(users)
    permissions = [each.entry.permission_type for each in plan.acls]
    assert permissions == sorted(permissions, key=lambda each: each is AclPermissionType.ALLOW)
    acls = there | set(plan.acls)
    after = kept | {(each.user, each.mechanism): each.credential for each in plan.credentials}
    again = make_plan(asked, state(acls, after), now_ms=NOW_MS, replace_users=replace_users)
    assert again.is_empty
    assert (again.refused, again.new_passwords) == (plan.refused, plan.new_passwords)


def test_a_document_shows_no_secret() -> None:
    plan = make_plan(source(credentials={("alice", SHA_256): ONE}), state(), now_ms=NOW_MS)
    text = str(document_of(plan, applied=False)) + repr(plan)
    for secret in (ONE.salt, ONE.stored_key, ONE.server_key):
        assert repr(secret)[2:-1] not in text


KEY: ScramKey = ("alice", SHA_256)


@pytest.mark.parametrize(
    ("iterations", "snapshot", "credentials", "reason"),
    [
        ({KEY: 4096}, {KEY: ONE}, {KEY: ONE}, None),
        ({KEY: 8192}, {KEY: ONE}, {}, "after the snapshot"),
        ({KEY: 4096}, {}, {}, "after the snapshot"),
        ({KEY: 4096}, None, {}, "no API returns the keys"),
        ({}, {KEY: ONE}, {}, None),
    ],
)
def test_a_snapshot_adds_keys_only_to_users_whom_the_cluster_tells_of(
    iterations: dict[ScramKey, int],
    snapshot: dict[ScramKey, ScramCredential] | None,
    credentials: dict[ScramKey, ScramCredential],
    reason: str | None,
) -> None:
    image = MetadataImage(scram_credentials=snapshot) if snapshot is not None else None
    found = source_of("cluster", ClusterFacts((ALLOW,), iterations, {}), image)
    assert found.credentials == credentials
    assert found.acls == {ALLOW: "cluster"}
    assert [each.iterations for each in found.closed] == [*iterations.values()] * (reason is not None)
    assert [str(reason) in each.reason for each in found.closed] == [True] * (reason is not None)
    assert [each.count for each in found.left] == [1] * (not iterations)


def test_tokens_of_a_snapshot_count_only_as_far_as_the_cluster_confirms_them() -> None:
    image = MetadataImage(delegation_tokens={"a": TOKEN, "b": TOKEN}, acls={})
    told = ClusterFacts((), {}, {"a": TOKEN})
    found = source_of("cluster", told, image)
    assert set(found.tokens) == {"a"}
    assert [each.count for each in found.left] == [1]
    refused = source_of("cluster", ClusterFacts((), {}, {}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"), None)
    assert refused.left == (
        LeftOut("the cluster", "delegation tokens, answer DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", 1),
    )
    assert source_of("cluster", ClusterFacts((), {}, {}, "DELEGATION_TOKEN_AUTH_DISABLED"), None).left == ()
    assert set(source_of_snapshot("file", image, acls_only=False).tokens) == {"a", "b"}
    assert source_of_snapshot("file", image, acls_only=True).tokens == {}


def test_users_without_keys_come_by_name() -> None:
    iterations = {("b", SHA_512): 4096, ("b", SHA_256): 4096, ("a", SHA_512): 4096}
    found = source_of("cluster", ClusterFacts((), iterations, {}), None)
    assert [(each.user, each.mechanism) for each in found.closed] == sorted(iterations)


def test_a_snapshot_is_a_file_or_a_directory_and_nothing_else(tmp_path: Path) -> None:
    directory = tmp_path / "meta"
    user = InitialScramUser("alice", ScramMechanism.SCRAM_SHA_256, ONE)
    format_directory(directory, acls=[ALLOW, DENY], scram_users=[user])
    partition = directory / METADATA_PARTITION
    [checkpoint] = partition.glob("*.checkpoint")
    for path in (directory, partition, checkpoint):
        image = read_snapshot(path, ignore_torn_tail=False)
        assert set(image.acls.values()) == {ALLOW, DENY}
        found = source_of_snapshot("file", image, acls_only=False)
        assert found.acls == {ALLOW: "file", DENY: "file"}
        assert found.credentials == {KEY: ONE}
    other = tmp_path / "other.txt"
    other.write_text("x")
    for wrong, told in ((other, "neither a segment"), (tmp_path / "nothing", "there is no directory")):
        with pytest.raises(NoMetadataError, match=told):
            read_snapshot(wrong, ignore_torn_tail=False)
    (tmp_path / "empty.checkpoint").write_bytes(b"")
    for damaged in (tmp_path / "empty.checkpoint", tmp_path / "none.checkpoint"):
        with pytest.raises(MetadataError):
            read_snapshot(damaged, ignore_torn_tail=False)


def test_a_plan_of_nothing_is_empty_and_complete() -> None:
    plan = MigrationPlan(source="a", target="b")
    assert plan.is_empty
    assert plan.is_complete


def test_the_document_holds_what_the_reference_page_says() -> None:
    document = document_of(MigrationPlan(source="a", target="b"), applied=False)
    assert document.keys() == set(DOCUMENTS["migrate"].split())
