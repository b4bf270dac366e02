"""The users, topics and ACLs that most scenes share: literal, prefixed, wildcard, DENY."""

from testkit.guarded.cluster import PREFIXED, Op, Type, acl
from testkit.kustos import KustosSettings

TOPICS = ("orders-eu", "orders-us", "orders-secret", "invoices", "plans-hidden", "public-news")
USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol", "dave", "erin")}
ACLS = (
    # alice: a prefix, with a literal DENY inside it
    acl("alice", Op.READ, Type.TOPIC, "orders-", PREFIXED),
    acl("alice", Op.WRITE, Type.TOPIC, "orders-", PREFIXED),
    acl("alice", Op.ALL, Type.TOPIC, "orders-secret", allow=False),
    acl("alice", Op.READ, Type.GROUP, "alice-", PREFIXED),
    acl("alice", Op.WRITE, Type.TRANSACTIONAL_ID, "alice-", PREFIXED),
    # bob: one literal topic, every group
    acl("bob", Op.READ, Type.TOPIC, "orders-eu"),
    acl("bob", Op.READ, Type.GROUP, "*"),
    # carol: every topic but those of a denied prefix, never writing
    acl("carol", Op.READ, Type.TOPIC, "*"),
    acl("carol", Op.READ, Type.TOPIC, "plans-", PREFIXED, allow=False),
    acl("carol", Op.READ, Type.GROUP, "carol-group"),
    # dave: nothing of his own; erin: topics that she makes herself
    acl("erin", Op.CREATE, Type.TOPIC, "erin-", PREFIXED),
    acl("erin", Op.DELETE, Type.TOPIC, "erin-", PREFIXED),
    acl("erin", Op.DESCRIBE_CONFIGS, Type.TOPIC, "erin-", PREFIXED),
    acl("erin", Op.DESCRIBE, Type.CLUSTER, "kafka-cluster"),
    # everybody
    acl("*", Op.READ, Type.TOPIC, "public-news"),
)


def settings(**properties: str) -> KustosSettings:
    """Return this world's settings."""
    return KustosSettings(users=USERS, acls=ACLS, properties=properties)
