"""What Kafka's own tests hold of the metadata: batches of a snapshot, changes at once, users at format."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from kustos.acl import AclBindingFilter, PatternType, ResourcePatternFilter, ResourceType
from kustos.authorizer import StandardAuthorizer
from kustos.cli.failures import CommandError
from kustos.cli.storage.bootstrap import scram_users
from kustos.gateway.store.writer import MetadataWriter
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.image import (
    AclAdded,
    AclRemoved,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    ScramCredentialRemoved,
    ScramCredentialSet,
    acl_record,
    image_of,
    scram_record,
)
from kustos.metadata.log.snapshot import MAX_RECORDS_PER_BATCH, encode_snapshot, snapshot_batches
from kustos.metadata.records import RemoveUserScramCredentialRecord
from kustos.metadata.scram import ScramCredential, ScramMechanism, scram_credential
from kustos.metadata.store.store import CreateAcls, DeleteAcls, MetadataStore
from testkit.acls.one_line import acl


@pytest.mark.behaviour("B037")
@pytest.mark.parametrize("count", [0, 1, MAX_RECORDS_PER_BATCH, 2 * MAX_RECORDS_PER_BATCH + 1])
def test_acls_of_a_snapshot_are_cut_into_batches_the_last_one_shorter(count: int) -> None:
    records = [
        acl_record(UUID(int=number), acl(f"ALLOW READ User:a TOPIC t{number}")) for number in range(count)
    ]
    data = encode_snapshot(records, epoch=1, timestamp_ms=0)
    sizes = [len(batch.records) for batch in snapshot_batches(data, "snapshot") if not batch.is_control]
    full, rest = divmod(count, MAX_RECORDS_PER_BATCH)
    assert sizes == [MAX_RECORDS_PER_BATCH] * full + [rest] * bool(rest)


class Follower:
    """An authorizer that follows a store."""

    def __init__(self) -> None:
        self.authorizer = StandardAuthorizer()

    def publish_snapshot(self, image: MetadataImage) -> None:
        self.authorizer.load_snapshot(image.acls.items())

    def publish_delta(self, delta: MetadataDelta) -> None:
        for change in delta.changes:
            if isinstance(change, AclAdded):
                self.authorizer.add_acl(change.id, change.binding)
            elif isinstance(change, AclRemoved):
                self.authorizer.remove_acl(change.id)


@pytest.mark.behaviour("B081")
async def test_changes_made_at_the_same_time_all_count_in_the_end(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    store = MetadataStore.open(tmp_path / "log")
    follower = Follower()
    store.add_publisher(follower)
    writer = MetadataWriter(store)
    every = [
        acl(f"ALLOW READ User:user-{user} TOPIC {name}") for user in range(50) for name in ("foo", "bar")
    ]
    await asyncio.gather(*(writer.submit(CreateAcls((binding,))) for binding in every for _ in range(2)))
    bar = AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, "bar", PatternType.LITERAL))
    late = acl("DENY ALL User:late TOPIC foo")
    await asyncio.gather(
        writer.submit(DeleteAcls((bar,))),
        writer.submit(CreateAcls((late,))),
        writer.submit(DeleteAcls((bar,))),
    )
    await writer.close()
    expected = {binding for binding in every if binding.pattern.name == "foo"} | {late}
    assert set(follower.authorizer.acls()) == expected
    assert set(read_image(tmp_path / "log").acls.values()) == expected


CREDENTIAL = ScramCredential(b"salt", b"stored-key", b"server-key", 4096)


@pytest.mark.behaviour("B059", "B302")
def test_users_survive_records_and_deltas_apply_to_them() -> None:
    image = image_of(
        [
            scram_record("alice", 1, CREDENTIAL),
            scram_record("alice", 2, CREDENTIAL),
            scram_record("bob", 1, CREDENTIAL),
        ]
    )
    assert image_of(image.records()).same_state(image)
    builder = ImageBuilder(image)
    other = ScramCredential(b"other", b"stored-key", b"server-key", 8192)
    changes = builder.replay_all([RemoveUserScramCredentialRecord("alice", 1), scram_record("bob", 1, other)])
    assert changes == (ScramCredentialRemoved("alice", 1), ScramCredentialSet("bob", 1, other))
    assert dict(builder.build(1, 0).scram_credentials.items()) == {
        ("alice", 2): CREDENTIAL,
        ("bob", 1): other,
    }
    assert len(image.scram_credentials) == 3


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("THE_PASSWORD", "a password")
    return "password-env=THE_PASSWORD"


@pytest.mark.behaviour("B062")
def test_a_user_at_format_is_a_mechanism_with_its_list_in_brackets(password: str) -> None:
    found = scram_users([f"SCRAM-SHA-512=[name=alice,{password}]", f"SCRAM-SHA-256=[name=bob,{password}]"])
    assert [(user.name, user.mechanism.name) for user in found] == [
        ("alice", "SCRAM_SHA_512"),
        ("bob", "SCRAM_SHA_256"),
    ]
    for text in (
        f"SCRAM-SHA-1=[name=a,{password}]", f"SCRAM-SHA-256=name=a,{password}", f"[name=a,{password}]",
        f"SCRAM-SHA-256=[name=a,{password}", f"=[name=a,{password}]", "",
    ):  # fmt: skip
        with pytest.raises(CommandError):
            scram_users([text])


@pytest.mark.behaviour("B063")
@pytest.mark.parametrize("fields", ["{}", "name=a,{},colour=red", "name=a,{},name=b", "{},name="])
def test_a_user_at_format_has_a_name_and_nothing_unknown(password: str, fields: str) -> None:
    with pytest.raises(CommandError):
        scram_users([f"SCRAM-SHA-256=[{fields.format(password)}]"])


@pytest.mark.behaviour("B064")
def test_iterations_at_format_are_those_given_else_4096(password: str) -> None:
    (given, default) = scram_users(
        [f"SCRAM-SHA-256=[name=a,{password},iterations=8192]", f"SCRAM-SHA-256=[name=b,{password}]"]
    )
    assert (given.credential.iterations, default.credential.iterations) == (8192, 4096)


@pytest.mark.behaviour("B065")
def test_a_salt_at_format_is_the_one_given_in_base64_else_a_random_one(password: str) -> None:
    texts = [f"SCRAM-SHA-256=[name=a,{password},salt=c2FsdA==]", f"SCRAM-SHA-256=[name=b,{password}]"]
    given, random = scram_users(texts)
    assert given.credential.salt == b"salt"
    assert given.credential == scram_credential(ScramMechanism.SCRAM_SHA_256, "a password", b"salt", 4096)
    assert len({random.credential.salt, *(scram_users(texts)[1].credential.salt for _ in range(9))}) == 10
    for wrong in ("c2FsdA", "salt!", ""):
        with pytest.raises(CommandError, match="not Base64"):
            scram_users([f"SCRAM-SHA-256=[name=a,{password},salt={wrong}]"])


@pytest.mark.behaviour("B067")
def test_a_name_at_format_may_be_quoted_and_not_empty(password: str) -> None:
    (user,) = scram_users([f'SCRAM-SHA-256=[name="a, \\"b\\"]=c",{password}]'])
    assert user.name == 'a, "b"]=c'
    with pytest.raises(CommandError, match="name="):
        scram_users([f'SCRAM-SHA-256=[name="",{password}]'])
