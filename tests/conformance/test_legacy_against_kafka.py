"""`SimpleAclAuthorizer` against the real one of Kafka 2.8, with its ZooKeeper, over random worlds."""

import json
import logging
import re
from itertools import product
from pathlib import Path

import pytest

from kustos.legacy import read_acls, resource_of
from testkit.legacy_plays import KAFKAS_DECISIONS, KAFKAS_WRAPPER, OPERATIONS, decisions_play, wrapped_play
from testkit.legacy_probe import Command, Ours, decoded, digest, theirs


def test_the_wrapper_answers_as_kafkas_wrapper_does(tmp_path: Path) -> None:
    commands = wrapped_play()
    mine = Ours().answers(commands)
    answered, _ = theirs(commands, tmp_path)
    pairs = zip(commands, mine, (re.sub("^error.*", "error", answer) for answer in answered), strict=True)
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    assert differing[:5] == []
    assert digest(answered) == KAFKAS_WRAPPER
    assert min(mine.count("ALLOWED"), mine.count("DENIED")) > 300


def test_every_decision_listing_and_log_line_is_that_of_the_real_class(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commands = decisions_play()
    caplog.set_level(logging.DEBUG, logger="kafka.authorizer.logger")
    mine = Ours().answers(commands)
    answered, told = theirs(commands, tmp_path)
    pairs = zip(commands, mine, (answer.split(" ")[0] for answer in answered), strict=True)
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    assert differing[:5] == []
    assert digest(answered) == KAFKAS_DECISIONS
    assert min(mine.count("true"), mine.count("false")) > 300
    logged = [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
    assert logged == [line.replace("kafka.authorizer.logger - ", "") for line in told]


def test_what_is_written_is_what_kafka_writes_and_each_reads_the_other(tmp_path: Path) -> None:
    path = "/kafka-acl/Topic/orders"
    every = [
        {"principal": principal, "permissionType": permission, "operation": operation, "host": host}
        for principal, permission, operation, host in product(
            ("User:*", "Group:é€😀"), ("Allow", "Deny"), OPERATIONS, ("*", "10.0.0.1")
        )
    ]
    single = json.dumps({"version": 1, "acls": every[:1]})
    ours = Ours()
    ours.answer_add(json.dumps({"version": 1, "acls": every}), "Topic:orders")
    written = decoded(ours.answer_node(path))
    commands: list[Command] = [
        ("open", None, None), ("add", single, "Topic:LITERAL:orders"), ("node", path),
        ("add", written, "Topic:LITERAL:orders"), ("node", path), ("acls",),
    ]  # fmt: skip
    answered, _ = theirs(commands, tmp_path)
    alone = Ours()
    alone.answer_add(single, "Topic:orders")
    assert decoded(answered[2]) == decoded(alone.answer_node(path))
    assert answered[5] == ours.answer_acls()
    assert read_acls(decoded(answered[4])) == ours.authorizer.get_acls(resource_of(path))
