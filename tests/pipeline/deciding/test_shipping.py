"""ACLs reach the workers in the way that the kind of session has."""

import gc
import inspect
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.bulk.subjects import BulkSubjects
from kustos.pipeline.deciding import AclsInForce, ship, shipped_acls
from kustos.pipeline.deciding.shipped_acls import COMPILED_SETS_MAX, BroadcastAcls, FileAcls, compiled
from kustos.pipeline.session import is_connect
from kustos.pipeline.worker_cache import kept_in_worker
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


@dataclass
class Sent:
    """A broadcast variable as a worker has it."""

    value: bytes


def test_the_collector_passes_over_compiled_sets_and_frees_evicted_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anew = kept_in_worker(COMPILED_SETS_MAX, key=lambda one: one.digest, evicted=shipped_acls._collect)
    monkeypatch.setattr(shipped_acls, "_compiled", anew(inspect.unwrap(shipped_acls._compiled)))
    before = subjects_alive()
    question = ("User:bob", "10.0.0.1", "READ", "TOPIC", "orders")
    names = ("principal", "host", "operation", "resource_type", "resource_name")
    questions = {name: pa.array([text]) for name, text in zip(names, question, strict=True)}
    for number in range(COMPILED_SETS_MAX + 2):
        acl_set = AclsInForce.of("small", [acl(f"ALLOW READ User:bob TOPIC orders-{number}")])
        sent = BroadcastAcls(acl_set.name, acl_set.digest, Sent(acl_set.content))
        compiled(sent, with_rule=False).authorize(questions)
        authorizer = shipped_acls._compiled(sent).authorizer
        assert all(one is not authorizer.index for one in gc.get_objects())
    assert subjects_alive() - before == COMPILED_SETS_MAX


def subjects_alive() -> int:
    """Count the tables of bulk decisions in this process, also those that the collector passes over."""
    gc.unfreeze()
    return sum(type(one) is BulkSubjects for one in gc.get_objects())
