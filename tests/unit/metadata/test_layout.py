"""The small files of a metadata directory: what is written and read, and what is refused in which words."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from kustos.metadata.errors import DirectoryError, LogDamagedError
from kustos.metadata.log import MetaProperties, SnapshotId, layout

PATH = Path("/dir/meta.properties")
CLUSTER, ID = "4L6g3nShT-eMCtK--X86sw", UUID(int=7)


def test_meta_properties_are_as_kafka_writes_them() -> None:
    ours = MetaProperties(CLUSTER, 3, ID)
    text = f"#\ncluster.id={CLUSTER}\ndirectory.id=AAAAAAAAAAAAAAAAAAAABw\nnode.id=3\nversion=1\n"
    assert ours.encode() == text.encode()
    assert MetaProperties.decode(text.encode(), PATH) == ours
    without = MetaProperties(CLUSTER, 3)
    assert without.encode() == f"#\ncluster.id={CLUSTER}\nnode.id=3\nversion=1\n".encode()
    assert MetaProperties.decode(without.encode(), PATH) == without


@pytest.mark.parametrize(
    "text",
    [
        f"broker.id=3\ncluster.id={CLUSTER}\nversion=0\n",
        f"broker.id=3\ncluster.id={CLUSTER}\n",
        f"# a comment\n! another = one\n\n  node.id = 3 \r\nversion=1\ncluster.id= {CLUSTER}\n",
        f"node.id=3\nversion=1\ncluster.id={CLUSTER}\nunheard.of=x\nno-sign\n",
    ],
)
def test_what_java_reads_as_properties_is_read(text: str) -> None:
    assert MetaProperties.decode(text.encode(), PATH) == MetaProperties(CLUSTER, 3)


def test_signs_that_java_escapes_are_read() -> None:
    text = b"version=1\nnode.id=3\ncluster.id=a\\:b\\=c=d\n"
    assert MetaProperties.decode(text, PATH).cluster_id == "a:b=c=d"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version=2\n", f"`{PATH}` has version `2`, only 0 and 1 are known"),
        (
            "version=1\nnode.id=3\n",
            f"`{PATH}` lacks `cluster.id` or `node.id`, format the directory again",
        ),
        (
            "version=1\nbroker.id=3\ncluster.id=x\n",
            f"`{PATH}` lacks `cluster.id` or `node.id`, format the directory again",
        ),
        (
            "version=0\nnode.id=3\ncluster.id=x\n",
            f"`{PATH}` lacks `cluster.id` or `broker.id`, format the directory again",
        ),
        (
            "version=1\nnode.id=-3\ncluster.id=x\n",
            f"`{PATH}` has the node id `-3`, which is not a number",
        ),
        (
            "version=1\nnode.id=12345678901\ncluster.id=x\n",
            f"`{PATH}` has the node id `12345678901`, which is not a number",
        ),
        (
            "version=1\nnode.id=3\ncluster.id=x\ndirectory.id=y\n",
            f"`{PATH}` is malformed: `y` is not a UUID in 22 characters of URL-safe Base64",
        ),
    ],
)
def test_meta_properties_that_kafka_would_not_accept_are_refused(text: str, words: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        MetaProperties.decode(text.encode(), PATH)
    assert str(caught.value) == words


def test_names_spell_offsets_and_nothing_else_does() -> None:
    assert layout.segment_name(42) == "00000000000000000042.log"
    assert layout.segment_base_offset("00000000000000000042.log") == 42
    assert SnapshotId(42, 7).file_name == "00000000000000000042-0000000007.checkpoint"
    assert SnapshotId.of("00000000000000000042-0000000007.checkpoint") == SnapshotId(42, 7)
    for name in ("42.log", "00000000000000000042.log.part", "x00000000000000000042.log", "0" * 20 + ".index"):
        assert layout.segment_base_offset(name) is None
        assert SnapshotId.of(name) is None
    assert SnapshotId.of("00000000000000000042-0000000007.checkpoint.part") is None


def test_a_checkpoint_of_epochs_is_kafkas() -> None:
    epochs = ((1, 0), (4, 17))
    assert layout.encode_epochs(epochs) == b"0\n2\n1 0\n4 17\n"
    assert layout.decode_epochs(b"0\n2\n1 0\n4 17\n", PATH) == epochs
    assert layout.decode_epochs(layout.encode_epochs(()), PATH) == ()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"0\n", b"1\n0\n", b"0\nx\n", b"0\n2\n1 0\n", b"0\n0\n1 0\n", b"0\n1\n1\n", b"0\n1\n1 0 0\n",
        b"0\n1\n1 x\n", b"0\n0\n\xff",
    ],
)  # fmt: skip
def test_a_checkpoint_that_is_none_is_damage(data: bytes) -> None:
    with pytest.raises(LogDamagedError) as caught:
        layout.decode_epochs(data, PATH)
    assert str(caught.value) == f"`{PATH}` is not a leader-epoch checkpoint; restore it from a copy"


def test_the_file_of_the_active_segment_names_it() -> None:
    assert layout.encode_active_segment(17) == b"17\n"
    assert layout.decode_active_segment(b"17\n", PATH) == 17
    for data in (b"", b"-1\n", b"x\n", b"\xb2\n", b"1 2"):
        with pytest.raises(LogDamagedError) as caught:
            layout.decode_active_segment(data, PATH)
        assert str(caught.value) == f"`{PATH}` names no segment; restore the directory from a copy"


def test_the_quorum_state_is_one_voter_that_leads() -> None:
    data = layout.encode_quorum_state(3, 9)
    # as `QuorumStateData` in version 0, in which Kafka's own file names no id of a cluster
    assert json.loads(data) == {
        "clusterId": "",
        "leaderId": 3,
        "leaderEpoch": 9,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 3}],
        "data_version": 0,
    }
    assert b" " not in data
    assert layout.decode_quorum_epoch(data, PATH) == 9
    assert layout.decode_quorum_epoch(b'{"leaderEpoch":5,"data_version":1}', PATH) == 5


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is not a quorum state; restore it from a copy"),
        (b"{}", "is not a quorum state; restore it from a copy"),
        (b"[1]", "is not a quorum state; restore it from a copy"),
        (b"\xff", "is not a quorum state; restore it from a copy"),
        (b'{"leaderEpoch":"5"}', "names no epoch; restore it from a copy"),
        (b'{"leaderEpoch":null}', "names no epoch; restore it from a copy"),
    ],
)
def test_a_quorum_state_that_is_none_is_damage(data: bytes, words: str) -> None:
    with pytest.raises(LogDamagedError) as caught:
        layout.decode_quorum_epoch(data, PATH)
    assert str(caught.value) == f"`{PATH}` {words}"


def test_the_topic_is_kafkas_own() -> None:
    assert layout.encode_partition_metadata() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
