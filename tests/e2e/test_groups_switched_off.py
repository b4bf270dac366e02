"""Group protocols that upstream has switched off: its answers pass, whatever the heartbeat says."""

from collections.abc import Iterator

import pytest

from kustos.wire.api_keys import ApiKey
from testkit.equality.requests import ask
from testkit.equality.sides import Side
from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import settings
from testkit.kafka import NodeSettings

UNSUPPORTED_VERSION = 35
SILENT = {"subscribed_topic_names": None, "subscribed_topic_regex": None, "topology": None}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """A broker of the newest release whose features are those of 3.9: no new group protocol is on."""
    kafka = NodeSettings(release_version="3.9-IV0")
    with GuardedCluster(tmp_path_factory.mktemp("off"), settings(), kafka=kafka) as made:
        yield made


@pytest.mark.parametrize(
    ("api", "version", "member_id"),
    [
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, "member"),
        (ApiKey.SHARE_GROUP_HEARTBEAT, 1, ""),
        (ApiKey.SHARE_GROUP_HEARTBEAT, 1, "member"),
        (ApiKey.STREAMS_GROUP_HEARTBEAT, 0, "member"),
    ],
)
def test_a_heartbeat_gets_upstream_s_error(
    world: GuardedCluster, api: ApiKey, version: int, member_id: str
) -> None:
    fields = {"group_id": "alice-group", "member_id": member_id, "member_epoch": 1, **SILENT}
    with Side("kustos", world.kustos.bootstrap, dict(world.settings.users)) as side:
        answer = ask(side, "alice", api, version, **fields)
    assert answer.error_code == UNSUPPORTED_VERSION
