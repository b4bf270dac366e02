"""`kustos metadata export` and `import`: what goes out comes in, and nothing that is malformed does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import InitialScramUser, format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.features import OTHER_FEATURES_MAX
from kustos.metadata.image import MetadataImage, image_of
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.portable import PortableError, apply_export, export_lines, read_export
from kustos.metadata.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, SystemClock
from tests.unit.metadata.inspection_support import acl, directory_with, snapshot_bytes, token

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
principals = texts.map("User:{}".format)
times = st.integers(-(2**63), 2**63 - 1)
acls = st.builds(
    AccessControlEntryRecord,
    st.uuids(),
    st.sampled_from([2, 3, 5, 6]),
    texts,
    st.sampled_from([3, 4]),
    principals,
    st.sampled_from(["*", "10.0.0.1", "0:0:0:0:0:0:0:1"]),
    st.sampled_from([2, 3, 8]),
    st.sampled_from([2, 3]),
)
credentials = st.one_of(
    *(
        st.builds(
            UserScramCredentialRecord,
            texts,
            st.just(code),
            st.binary(min_size=1, max_size=40),
            st.binary(min_size=size, max_size=size),
            st.binary(min_size=size, max_size=size),
            st.integers(4096, 16384),
        )
        for code, size in ((1, 32), (2, 64))
    )
)
tokens = st.builds(
    DelegationTokenRecord, principals, principals, st.lists(principals, max_size=3).map(tuple),
    times, times, times, texts,
)  # fmt: skip
configs = st.builds(ConfigRecord, st.sampled_from([2, 4, 99]), texts, texts, texts)
features = st.sampled_from(sorted(OTHER_FEATURES_MAX.items())).flatmap(
    lambda known: st.builds(FeatureLevelRecord, st.just(known[0]), st.integers(1, known[1]))
)


def value_of(record: AccessControlEntryRecord) -> tuple[Any, ...]:
    return (
        record.resource_type, record.resource_name, record.pattern_type, record.principal, record.host,
        record.operation, record.permission_type,
    )  # fmt: skip


images = st.builds(
    lambda level, *groups: image_of(
        [FeatureLevelRecord("metadata.version", level), *(record for group in groups for record in group)]
    ),
    st.integers(30, 33),
    st.lists(acls, max_size=6, unique_by=(lambda record: record.id, value_of)),
    st.lists(credentials, max_size=3),
    st.lists(tokens, max_size=3),
    st.lists(configs, max_size=3),
    st.lists(features, max_size=2),
)


def fresh(directory: Path) -> Path:
    format_directory(directory)
    return directory


def text_of(image: MetadataImage, *, with_credentials: bool = True) -> list[str]:
    return list(export_lines(image, with_credentials=with_credentials))


def taken_in(directory: Path, lines: Sequence[str]) -> MetadataImage:
    return apply_export(directory, read_export(lines, "file"), FileSystemStorage(), SystemClock())


@pytest.mark.slow
@settings(max_examples=60)
@given(image=images)
def test_what_is_exported_and_imported_is_the_same_image(
    image: MetadataImage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = fresh(tmp_path_factory.mktemp("import") / "meta")
    promised = taken_in(directory, text_of(image))
    assert promised.same_state(image)
    assert read_image(directory).same_state(image)
    store = MetadataStore.open(directory)
    assert store.image.same_state(image)
    store.close()
    assert read_image(directory).same_state(image)


@settings(max_examples=60)
@given(image=images)
def test_without_credentials_none_is_in_the_file(image: MetadataImage) -> None:
    lines = text_of(image, with_credentials=False)
    text = "".join(lines)
    assert '"scram"' not in text
    kept = image_of([each.record for each in read_export(lines, "file").records])
    assert kept.acls == image.acls
    assert kept.delegation_tokens == image.delegation_tokens
    assert kept.features == image.features
    assert not any(kind == 4 for kind, _, _ in kept.configs)


IMAGE = image_of(
    [
        FeatureLevelRecord("metadata.version", 30),
        acl(1),
        UserScramCredentialRecord("alice", 1, b"salt", b"k" * 32, b"s" * 32, 4096),
        token(),
        ConfigRecord(4, "", "super.users", "User:admin"),
        ConfigRecord(4, "1", "ssl.keystore.password", "hidden"),
    ]
)
HEAD, FEATURE, SCRAM, ACL, TOKEN, CONFIG = (
    line.strip() for line in text_of(IMAGE) if "ssl.keystore" not in line
)


def changed(line: str, **fields: Any) -> str:
    document = json.loads(line)
    for name, value in fields.items():
        document[name] = value
        if value is None:
            del document[name]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("line", "where", "rule"),
    [
        ("no JSON", 2, "the line is not JSON"),
        ("[1]", 2, "the line is not a JSON object"),
        ("[" * 100_000, 2, "the line is not JSON"),
        ('{"kind":"acl","kind":"acl"}', 2, "a field is there twice"),
        ('{"kind":"nothing"}', 2, "`kind` must be one of feature, acl, scram, token, config"),
        ('{"kind":["acl"]}', 2, "`kind` must be one of"),
        ("{}", 2, "`kind` must be one of"),
        (changed(ACL, color="red"), 2, "'color' is not a field of a line of kind `acl`"),
        (changed(ACL, host=None), 2, "`host` is missing"),
        (changed(ACL, host=1), 2, "`host` must be a text"),
        (changed(ACL, id="short"), 2, "`id` must be a UUID"),
        (changed(ACL, operation="FLY"), 2, "is not an operation"),
        (changed(ACL, operation="ANY"), 2, "is only for filters"),
        (changed(ACL, principal="alice"), 2, "is not a principal"),
        (changed(ACL, resource_name=""), 2, "Invalid empty resource name"),
        (changed(ACL, host="10.0.0.0/8"), 2, "CIDR-based ACL host patterns require metadata version"),
        (changed(FEATURE, level=0), 2, "`level` must be a whole number from 1 to 32767"),
        (changed(FEATURE, level=True), 2, "`level` must be a whole number"),
        (changed(FEATURE, level=99), 2, "metadata.version level 99 is not known here, only levels 7 to 33"),
        (changed(FEATURE, name="x", level=1), 2, "the feature `x` (at level 1) is not known here"),
        (changed(SCRAM, mechanism="SCRAM-MD5"), 2, "`mechanism` must be SCRAM-SHA-256 or SCRAM-SHA-512"),
        (changed(SCRAM, salt="se cret"), 2, "`salt` must be Base64"),
        (changed(SCRAM, stored_key="c2VjcmV0"), 2, "has not the length of SCRAM-SHA-256"),
        (changed(SCRAM, iterations=1), 2, "Too few iterations"),
        (changed(SCRAM, user=""), 2, "Username must not be empty"),
        (changed(TOKEN, owner="nobody"), 2, "names `nobody`, which is not a principal"),
        (changed(TOKEN, renewers="User:x"), 2, "`renewers` must be a list"),
        (changed(CONFIG, resource_type=200), 2, "`resource_type` must be a whole number"),
        (changed(CONFIG, value="x" * 40_000), 2, "`value` has more than 32767 bytes"),
        (changed(ACL, resource_name="\ud800"), 2, "half of a surrogate pair"),
    ],
)
def test_what_is_malformed_is_refused_with_place_and_rule(
    line: str, where: int, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = fresh(tmp_path / "meta")
    before = {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
    file = tmp_path / "file.jsonl"
    file.write_text(changed(HEAD, lines=2) + "\n" + line + "\n" + ACL)
    assert run(["metadata", "import", str(file), str(directory)]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"{file}, line {where}: " in error
    assert rule in error
    assert "se cret" not in error
    assert "c2VjcmV0" not in error
    after = {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".lock"} == {
        path: data for path, data in before.items() if path.name != ".lock"
    }


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([], "line 1: the file is blank"),
        ([changed(HEAD, kustos_metadata=2)], "line 1: `kustos_metadata` is 2, only 1 is known"),
        ([FEATURE], "line 1: 'kind' is not a field of the head of an export"),
        ([changed(HEAD, lines=2), FEATURE], "line 2: the head announces 2 lines after it, but there are 1"),
        ([changed(HEAD, lines=2), ACL, ACL], "line 3: two ACLs have the id"),
        ([changed(HEAD, lines=2), ACL, changed(ACL, id="A" * 22)], "line 3: the ACL `0000"),
        ([changed(HEAD, lines=2), SCRAM, SCRAM], "line 3: the user `alice` has a credential"),
        ([changed(HEAD, lines=2), TOKEN, TOKEN], "line 3: the delegation token `token-1` is there already"),
        ([changed(HEAD, lines=2), CONFIG, CONFIG], "line 3: the setting `super.users` of this resource"),
        ([changed(HEAD, lines=2), FEATURE, FEATURE], "line 3: the feature `metadata.version` is there twice"),
    ],
)
def test_a_file_that_is_cut_or_repeats_itself_is_refused(
    lines: list[str], rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = fresh(tmp_path / "meta")
    file = tmp_path / "file.jsonl"
    file.write_text("\n".join(lines))
    assert run(["metadata", "import", str(file), str(directory)]) == ExitCode.USAGE
    assert rule in capsys.readouterr().err
    assert not read_image(directory).acls


def test_what_a_directory_was_formatted_with_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    credential = scram_credential(ScramMechanism.SCRAM_SHA_256, "secret", b"0123456789abcdef", 4096)
    admin = InitialScramUser("admin", ScramMechanism.SCRAM_SHA_256, credential)
    directory = tmp_path / "meta"
    format_directory(directory, scram_users=[admin])
    image = taken_in(directory, text_of(IMAGE))
    assert set(image.scram_credentials) == {("admin", 1), ("alice", 1)}
    again = tmp_path / "again"
    format_directory(again, scram_users=[InitialScramUser("alice", ScramMechanism.SCRAM_SHA_256, credential)])
    file = tmp_path / "file.jsonl"
    file.write_text("".join(text_of(IMAGE)))
    assert run(["metadata", "import", str(file), str(again)]) == ExitCode.USAGE
    assert "the user `alice` has a credential of this mechanism already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("level", "line", "words"),
    [
        (13, TOKEN, "The current metadata.version does not support delegation tokens"),
        (10, SCRAM, "The current metadata.version does not support SCRAM"),
    ],
)
def test_what_the_metadata_version_of_the_file_cannot_hold_is_refused(
    level: int, line: str, words: str, tmp_path: Path
) -> None:
    old = [changed(HEAD, lines=2), changed(FEATURE, level=level), line]
    with pytest.raises(PortableError) as caught:
        taken_in(fresh(tmp_path / "old"), old)
    assert str(caught.value) == f"file, line 3: {words}"
    enough = [*old[:1], changed(FEATURE, level=level + 1), line]
    taken_in(fresh(tmp_path / "enough"), enough)


def test_only_a_new_directory_takes_anything_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text("".join(text_of(IMAGE)))
    used = fresh(tmp_path / "used")
    MetadataStore.open(used).close()
    assert run(["metadata", "import", str(file), str(used)]) == ExitCode.FAILED
    assert "its log has begun" in capsys.readouterr().err
    assert run(["metadata", "import", str(file), str(tmp_path / "none")]) == ExitCode.USAGE
    assert "there is no directory" in capsys.readouterr().err
    locked = fresh(tmp_path / "locked")
    store = FileSystemStorage().lock(locked / ".lock")
    assert run(["metadata", "import", str(file), str(locked)]) == ExitCode.FAILED
    store.release()
    assert run(["metadata", "import", str(file), str(locked)]) == ExitCode.OK
    assert "now holds 1 ACL, 1 SCRAM credential" in " ".join(capsys.readouterr().out.split())


def test_a_file_with_credentials_is_for_its_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(*IMAGE.records(), epoch=0))
    file = tmp_path / "out.jsonl"
    export = ["metadata", "export", str(directory), "--out", str(file)]
    assert run(export) == ExitCode.OK
    assert "2 secrets left out" in capsys.readouterr().err
    assert "hidden" not in file.read_text()
    assert "super.users" in file.read_text()
    assert run([*export, "--with-credentials"]) == ExitCode.USAGE
    assert "exists already" in capsys.readouterr().err
    assert run([*export, "--with-credentials", "--force"]) == ExitCode.OK
    assert file.stat().st_mode & 0o777 == 0o600
    assert image_of([each.record for each in read_export(file.open(), "f").records]).same_state(IMAGE)
    capsys.readouterr()
    assert run(["metadata", "export", str(directory), "--out", "-", "--with-credentials"]) == ExitCode.USAGE
    assert capsys.readouterr().out == ""
    snapshot = directory / METADATA_PARTITION / f"{0:020d}-{0:010d}.checkpoint"
    assert run(["metadata", "export", str(snapshot), "--out", "-"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines(keepends=True)
    assert len(read_export(lines, "out").records) == json.loads(lines[0])["lines"] == 4
    assert run(["metadata", "export", str(snapshot), "--out", "-", "--at", "3"]) == ExitCode.USAGE


def test_what_was_taken_in_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = fresh(tmp_path / "meta")
    taken_in(directory, text_of(IMAGE))
    (snapshot,) = (directory / METADATA_PARTITION).glob("*.checkpoint")
    # it holds keys of passwords
    assert snapshot.stat().st_mode & 0o777 == 0o600


def test_the_words_of_kafka_end_without_a_period_here(tmp_path: Path) -> None:
    lines = [changed(HEAD, lines=1), changed(ACL, host="10.0.0.0/8")]
    with pytest.raises(PortableError) as caught:
        taken_in(fresh(tmp_path / "meta"), lines)
    assert str(caught.value) == (
        "file, line 2: CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher"
    )


def test_an_acl_that_no_file_can_say_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = AccessControlEntryRecord(UUID(int=1), 2, "t", 3, "nobody", "*", 3, 3)
    directory = directory_with(
        tmp_path, snapshot_0_0=snapshot_bytes(FeatureLevelRecord("metadata.version", 30), odd, epoch=0)
    )
    assert run(["metadata", "export", str(directory), "--out", str(tmp_path / "out")]) == ExitCode.USAGE
    assert "`nobody` is not a principal" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_records_of_other_kinds_are_no_part_of_it() -> None:
    records: list[MetadataRecord] = [FeatureLevelRecord("metadata.version", 30)]
    assert [json.loads(line).get("kind") for line in text_of(image_of(records))] == [None, "feature"]
