"""The report on a release of Kafka finds what 4.4.0 changed, and kustos knows what 4.4.0 has."""

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.wire import ErrorCode
from kustos.wire.schemas import APIS
from scripts.generate_schemas import definitions, newest_clients
from scripts.kafka_release import Facts, facts_of, report
from testkit import versions

KNOWN = (
    "+ ControllerApis.handleUnregisterController: ALTER CLUSTER",
    "+ KafkaApis.handleStreamsGroupTopologyDescriptionUpdate: READ GROUP",
    "+ ConsumerGroupHeartbeatResponse GROUP_ID_NOT_FOUND: 0+",
    "+ GROUP_DELETION_FAILED: 134",
    "+ STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: 135",
    "+ CONTROLLER_ID_NOT_REGISTERED: 136",
    "~ ApiVersionsRequest: versions 0-4 (API 18) -> versions 0-5 (API 18)",
    "~ DeleteGroupsResponse: versions 0-2 (API 42) -> versions 0-3 (API 42)",
    "~ StreamsGroupDescribeRequest: versions 0 (API 89) -> versions 0-1 (API 89)",
    "~ StreamsGroupHeartbeatRequest: versions 0 (API 88) -> versions 0-1 (API 88)",
    "+ StreamsGroupTopologyDescriptionUpdateRequest: versions 0 (API 93)",
    "~ TxnOffsetCommitRequest: versions 0-5 (API 28) -> versions 0-6 (API 28)",
    "+ UnregisterControllerRequest: versions 0 (API 94)",
    "~ DescribeProducersRequest.Topics.Name: type=string versions=0+ -> type=string versions=0+ mapKey=True",
    "+ sasl.oauthbearer.allow.unverified.issuer: BOOLEAN, false",
    "+ metadata.cluster.check.enable: BOOLEAN, true",
)


@pytest.fixture(scope="module")
def newest() -> Facts:
    return facts_of(versions.KAFKA)


def test_the_report_finds_what_4_4_changed(newest: Facts) -> None:
    lines = set(report(facts_of(versions.PREVIOUS), newest))
    assert not [line for line in KNOWN if line not in lines]


def test_a_release_does_not_differ_from_itself(newest: Facts) -> None:
    assert not list(report(newest, newest))


def test_kustos_has_the_errors_of_the_newest_release(newest: Facts) -> None:
    assert {code.name.upper(): str(int(code)) for code in ErrorCode} == newest["errors"]


def test_kustos_has_the_operations_and_resource_types_of_the_newest_release(newest: Facts) -> None:
    assert {each.name: str(int(each)) for each in AclOperation} == newest["operations"]
    assert {each.name: str(int(each)) for each in ResourceType} == newest["resource types"]


def test_kustos_has_the_apis_of_the_newest_release() -> None:
    theirs = {key: (api.name, api.first, api.last) for key, api in definitions(newest_clients()).items()}
    assert {key: (api.name, api.first, api.last) for key, api in APIS.items()} == theirs
