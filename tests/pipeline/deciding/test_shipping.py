"""ACLs reach the workers in the way that the kind of session has."""

from pyspark.sql import SparkSession

from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.deciding.shipped_acls import BroadcastAcls, FileAcls
from kustos.pipeline.session import is_connect
from testkit.acls.one_line import acl
from tests.pipeline.backends import IS_CONNECT


def test_a_set_is_broadcast_or_over_connect_a_file_that_may_be_sent_twice(spark: SparkSession) -> None:
    assert is_connect(spark) == IS_CONNECT
    acl_set = AclsInForce.of("small", [acl("ALLOW READ User:bob TOPIC orders")])
    first, second = ship(spark, acl_set), ship(spark, acl_set)
    assert type(first) is type(second) is (FileAcls if IS_CONNECT else BroadcastAcls)
    assert first.digest == second.digest == acl_set.digest
    if isinstance(first, FileAcls):
        assert first == second
