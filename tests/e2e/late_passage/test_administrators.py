"""Administrators whose own requests are among those that a change forbids."""

from kustos.acl import CLUSTER_NAME
from testkit.guarded.cluster import Op, Type, acl
from testkit.late_passage.fields import DELETE_ACLS, VERSIONS, delete_acls
from testkit.late_passage.stage import Stage
from testkit.tap.frames import read_response

CLUSTER_AUTHORIZATION_FAILED = 31


def test_who_takes_her_own_right_does_not_wait_for_herself(stage: Stage) -> None:
    right = acl(stage.user, Op.ALTER, Type.CLUSTER, CLUSTER_NAME)
    stage.grant(right)
    assert stage.delete_exactly(stage.client, right) == [0]
    again = stage.connect()
    assert stage.delete_exactly(again, right) == [CLUSTER_AUTHORIZATION_FAILED]


def test_two_who_take_each_others_rights_at_once_do_not_wait_for_each_other_for_ever(stage: Stage) -> None:
    rights = [acl(user, Op.ALTER, Type.CLUSTER, CLUSTER_NAME) for user in ("bob", "carol")]
    stage.grant(*rights)
    both = [stage.connect(user=user) for user in ("bob", "carol")]
    for client, other in zip(both, reversed(rights), strict=True):
        client.send(client.request(DELETE_ACLS, VERSIONS[DELETE_ACLS], **delete_acls(other)))
    for client in both:
        try:
            read_response(client.receive(), DELETE_ACLS, VERSIONS[DELETE_ACLS])
        except EOFError:
            continue  # it was cut off as one who may not ask this any more
    # nobody hangs, and the node serves
    assert stage.delete_exactly(stage.admin, *rights) == [0, 0]
