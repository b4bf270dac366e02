"""Features of the cluster, and voters of its quorum: nothing of either changes."""

from typing import Any

from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Story, one
from tests.conformance.equality.world import EVERYBODY, FEW

FEATURES = ApiKey.UPDATE_FEATURES
ADD, REMOVE = ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
DIRECTORY = b"\x33" * 16
STRANGERS = "AAAAAAAAQACAAAAAAAAAAA"
"""Another cluster."""


def updates(title: str, users: tuple[str, ...], *wanted: tuple[str, int, int], **fields: Any) -> Story:
    """Return a story of one UpdateFeatures, with a level and how to reach it for each feature."""
    given = [
        {
            "feature": feature,
            "max_version_level": level,
            "upgrade_type": kind,
            "allow_downgrade": kind != UPGRADE,
        }
        for feature, level, kind in wanted
    ]
    return one(title, FEATURES, users, timeout=10_000, feature_updates=given, **fields)


UPDATES = (
    updates("of an unknown feature", EVERYBODY, ("no.such.feature", 1, UPGRADE)),
    updates("of a level that is not there", FEW, ("share.version", 99, UPGRADE)),
    updates("of two that fail", FEW, ("no.such.feature", 1, UPGRADE), ("share.version", 99, UPGRADE)),
    updates("of none", FEW),
)


def adding(title: str, users: tuple[str, ...], **fields: Any) -> Story:
    """Return a story of one AddRaftVoter."""
    listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 9}
    given = {
        "cluster_id": STRANGERS,
        "timeout": 1000,
        "voter_id": 4711,
        "voter_directory_id": DIRECTORY,
        "listeners": [listener],
    }
    return one(title, ADD, users, **given | fields)


def removing(title: str, users: tuple[str, ...], **fields: Any) -> Story:
    """Return a story of one RemoveRaftVoter."""
    given = {"cluster_id": STRANGERS, "voter_id": 4711, "voter_directory_id": DIRECTORY}
    return one(title, REMOVE, users, **given | fields)


VOTERS = (
    adding("to another cluster", EVERYBODY),
    adding("without listeners", FEW, cluster_id=None, listeners=[]),
    removing("from another cluster", EVERYBODY),
    removing("of none", FEW, cluster_id=None),
)

STORIES = UPDATES + VOTERS
