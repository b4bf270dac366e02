"""Decide in your own program: `python examples/decide.py`, with kustos installed."""

from uuid import UUID, uuid4

from kustos import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    Action,
    AuthorizableRequestContext,
    KafkaPrincipal,
    ResourceType,
    StandardAuthorizer,
)
from kustos.acl.forms import AclForm, read_acls

ACLS = """\
resource_type,resource_name,pattern_type,principal,host,operation,permission_type
TOPIC,orders-,PREFIXED,User:alice,*,READ,ALLOW
TOPIC,orders-secret,LITERAL,User:*,*,READ,DENY
TOPIC,orders-eu,LITERAL,User:bob,10.0.0.0/8,WRITE,ALLOW
"""


def authorizer_of(acls: dict[UUID, AclBinding]) -> StandardAuthorizer:
    """Return an authorizer that holds these ACLs and answers at once."""
    authorizer = StandardAuthorizer(super_users=frozenset({"User:admin"}))
    authorizer.load_snapshot(acls.items())
    authorizer.complete_initial_load()
    return authorizer


def main() -> None:
    acls = {uuid4(): located.binding for located in read_acls(ACLS, AclForm.CSV, "ACLS")}
    authorizer = authorizer_of(acls)

    # one client asks again and again: a session keeps what it has learned, until an ACL changes
    alice = authorizer.session(KafkaPrincipal("User", "alice"), "192.168.1.7")
    for topic in ("orders-eu", "orders-secret", "payments"):
        decision = alice.decide(AclOperation.READ, ResourceType.TOPIC, topic)
        print(f"alice READ {topic}: {decision.result.value}, {decision.rule}")

    # a change is in force with the next question
    deny = next(acl_id for acl_id, acl in acls.items() if acl.entry.permission_type is AclPermissionType.DENY)
    authorizer.remove_acl(deny)
    decision = alice.decide(AclOperation.READ, ResourceType.TOPIC, "orders-secret")
    print(f"without the DENY: {decision.result.value}, {decision.rule}")

    # several questions of one request are decided together, on one state of the ACLs
    context = AuthorizableRequestContext(KafkaPrincipal("User", "bob"), "10.1.2.3")
    actions = [
        Action(ResourceType.TOPIC, "orders-eu", AclOperation.WRITE),
        Action(ResourceType.TOPIC, "orders-eu", AclOperation.READ),
    ]
    for action, decision in zip(actions, authorizer.authorize(context, actions), strict=True):
        print(f"bob {action.operation} {action.resource_name}: {decision.result.value}")

    # may bob write to any topic at all?
    anywhere = authorizer.authorize_by_resource_type(context, AclOperation.WRITE, ResourceType.TOPIC)
    print(f"bob WRITE somewhere: {anywhere.result.value}")


if __name__ == "__main__":
    main()
