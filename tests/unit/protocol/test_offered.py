"""The offered API versions: rebuilt when the offer of upstream changes, and only then."""

from dataclasses import replace
from typing import Any

import pytest

from kustos.protocol import OfferedApis
from kustos.protocol.api_versions import KNOWN_MAX_BYTES
from kustos.wire import ApiKey, ErrorCode, Message, request_codec, response_codec
from testkit.sasl import request, response, versions_request
from tests.unit.protocol.protocol_requests import answer_of, connection

METADATA = int(ApiKey.METADATA)


def features(epoch: int) -> Message:
    codec = response_codec(ApiKey.API_VERSIONS, 4)
    return codec.new(finalized_features_epoch=epoch)


def test_versions_and_bodies_follow_upstream() -> None:
    upstream, upstream_features = {METADATA: (0, 8)}, features(7)
    offered = OfferedApis(lambda: upstream, lambda: upstream_features)
    first, body = offered.versions, offered.body(4)
    assert first[METADATA] == (0, 8)
    assert offered.versions is first
    assert offered.body(4) is body

    def decoded(version: int) -> Message:
        return response_codec(ApiKey.API_VERSIONS, version).decode(offered.body(version)).message

    def metadata_version(version: int) -> int:
        return next(int(each.max_version) for each in decoded(version).api_keys if each.api_key == METADATA)

    upstream = {METADATA: (0, 9)}
    assert [metadata_version(version) for version in range(6)] == [9] * 6
    assert offered.versions[METADATA] == (0, 9)
    assert first[METADATA] == (0, 8), "an earlier offer does not change"
    assert decoded(4).finalized_features_epoch == 7
    upstream_features = features(8)
    assert decoded(4).finalized_features_epoch == 8


def test_each_body_has_its_version() -> None:
    offered = OfferedApis(lambda: {METADATA: (0, 12)})
    bodies = [offered.body(version) for version in range(6)]
    for version, body in enumerate(bodies):
        assert response_codec(ApiKey.API_VERSIONS, version).decode(body).message.error_code == 0
    assert request_codec(ApiKey.API_VERSIONS, 3).flexible
    assert bodies[2] != bodies[3]


@pytest.mark.parametrize("version", range(6))
def test_api_versions_is_answered_with_the_body_of_its_version(version: int) -> None:
    upstream = {METADATA: (0, 12)}
    offered = OfferedApis(lambda: upstream)
    for correlation_id in (1, 2**31 - 1, -5):
        answer = offered.answer(versions_request(version, correlation_id=correlation_id))
        assert answer is not None
        assert answer.endswith(offered.body(version))
        assert response(answer, ApiKey.API_VERSIONS, version, correlation_id).error_code == 0
    before, upstream = offered.answer(versions_request(version)), {METADATA: (0, 9)}
    assert offered.answer(versions_request(version)) != before, "it contains the current offer of upstream"


NOT_IN_ORDER = {
    "another API": request(ApiKey.METADATA, 12),
    "an unknown version": b"\0\x12\0\x63" + versions_request(4)[4:],
    "a version below all": b"\0\x12\xff\xff" + versions_request(0)[4:],
    "an invalid name": versions_request(4, name="-a-"),
    "no name": versions_request(4, name=""),
    "a cluster without a node": versions_request(5, cluster_id="c-1"),
    "a node without a cluster": versions_request(5, node_id=1),
    "a long name": versions_request(4, name="n" * KNOWN_MAX_BYTES),
    "bytes behind it": versions_request(4) + b"\0",
    "half a body": versions_request(4)[:-3],
    "half a header": versions_request(4)[:6],
    "a client id that is no text": b"\0\x12\0\0\0\0\0\1\0\1\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("what", NOT_IN_ORDER)
def test_every_other_frame_is_left_to_the_guard(what: str) -> None:
    offered = OfferedApis(lambda: {METADATA: (0, 12)})
    for _ in range(2):
        assert offered.answer(NOT_IN_ORDER[what]) is None


def is_broker_two(cluster_id: str, node_id: int) -> bool:
    """The listener of node 2 of the cluster."""
    return (cluster_id, node_id) == ("c-1", 2)


RIGHT_HERE: dict[str, Any] = {"cluster_id": "c-1", "node_id": 2}
MISDIRECTED = {
    "to another node": RIGHT_HERE | {"node_id": 3},
    "to another cluster": RIGHT_HERE | {"cluster_id": "c-2"},
    "to no cluster": RIGHT_HERE | {"cluster_id": ""},
}


@pytest.mark.parametrize("what", MISDIRECTED)
def test_a_misdirected_client_bootstraps_again(what: str) -> None:
    # KIP-1242
    asked = versions_request(5, **MISDIRECTED[what])
    assert OfferedApis(dict).answer(asked, is_broker_two) is None, "the guard answers"
    driver = connection()
    driver.guard = replace(driver.guard, serves=is_broker_two)
    answer = answer_of(driver.run(asked), 18, 5)
    assert (answer["error_code"], answer["api_keys"]) == (ErrorCode.rebootstrap_required, [])


@pytest.mark.parametrize("fields", [{"cluster_id": "c-1"}, {"node_id": 2}])
def test_a_client_names_cluster_and_node_together(fields: dict[str, Any]) -> None:
    answer = answer_of(connection().run(versions_request(5, **fields)), 18, 5)
    assert (answer["error_code"], answer["api_keys"]) == (ErrorCode.invalid_request, [])


def test_a_client_that_means_this_node_or_none_gets_the_versions() -> None:
    offered = OfferedApis(dict)
    none: dict[str, Any] = {}
    for fields in (RIGHT_HERE, none):
        answer = offered.answer(versions_request(5, **fields), is_broker_two)
        assert answer is not None
        assert response(answer, ApiKey.API_VERSIONS, 5).error_code == 0
