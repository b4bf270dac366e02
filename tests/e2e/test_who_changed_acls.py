"""Who asked for each ACL, exactly, while several change ACLs at the same moment: events have offsets."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.static.primitive import i8

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.loader import read_image
from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import worker_settings
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

CREATE_ACLS, DELETE_ACLS = 30, 31
TOPIC, LITERAL, READ, ALLOW, ANY = 2, 3, 3, 3, 1
ROUNDS = 25
USERS = {"ann": "ann-secret", "ben": "ben-secret", "cid": "cid-secret", "eve": "eve-secret"}
ADMINS = ("ann", "ben", "cid")
CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.fixture(scope="module", params=["1", "2"], ids=["one-process", "two-workers"])
def node(
    kafka: KafkaNode, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[KustosNode]:
    properties = {} if request.param == "1" else worker_settings()
    settings = KustosSettings(users=USERS, super_users=ADMINS, properties=properties)
    with KustosNode(tmp_path_factory.mktemp("kustos"), kafka.bootstrap, settings) as node:
        yield node


def log_in(node: KustosNode, user: str) -> RawClient:
    return RawClient(node.bootstrap, f"tool-of-{user}").log_in(user, USERS[user])


def creation(name: str, principal: str = "User:app") -> AclCreation:
    return AclCreation(
        resource_type=i8(TOPIC),
        resource_name=name,
        resource_pattern_type=i8(LITERAL),
        principal=principal,
        host="*",
        operation=i8(READ),
        permission_type=i8(ALLOW),
    )


def deletion(name: str) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=i8(TOPIC),
        resource_name_filter=name,
        pattern_type_filter=i8(LITERAL),
        principal_filter=None,
        host_filter=None,
        operation=i8(ANY),
        permission_type=i8(ANY),
    )


def change_much(node: KustosNode, user: str, start: threading.Barrier) -> None:
    """Make ACLs, one or two at once, and take every second away, as fast as it goes."""
    with log_in(node, user) as client:
        start.wait()
        for number in range(ROUNDS):
            names = [f"{user}-{number}-{part}" for part in range(1 + number % 2)]
            made = client.ask(CREATE_ACLS, 3, creations=tuple(map(creation, names)))
            assert [int(each.error_code) for each in made.results] == [0] * len(names)
            if number % 2:
                gone = client.ask(DELETE_ACLS, 3, filters=(deletion(names[0]),))
                assert [len(each.matching_acls) for each in gone.filter_results] == [1]


def be_refused(node: KustosNode, start: threading.Barrier) -> None:
    with log_in(node, "eve") as client:
        start.wait()
        for number in range(ROUNDS):
            answer = client.ask(CREATE_ACLS, 3, creations=(creation(f"eve-{number}"),))
            assert int(answer.results[0].error_code) == CLUSTER_AUTHORIZATION_FAILED


def events_of(node: KustosNode, user: str) -> list[dict[str, Any]]:
    return [event for event in node.audit_events() if event["principal_name"] == user]


def history(node: KustosNode, capsys: pytest.CaptureFixture[str], *more: str) -> list[Any]:
    capsys.readouterr()
    command = ["metadata", "history", str(node.metadata_directory), "--audit", str(node.audit_directory)]
    assert run([*command, *more, "-o", "json"]) == ExitCode.OK
    changes: list[Any] = json.loads(capsys.readouterr().out)["changes"]
    return changes


def test_of_admins_who_change_acls_at_the_same_moment_exactly_the_right_one_is_named(
    node: KustosNode, capsys: pytest.CaptureFixture[str]
) -> None:
    start = threading.Barrier(len(ADMINS) * 2)
    failed: list[BaseException] = []

    def work(play: Callable[..., None], *arguments: object) -> None:
        try:
            play(*arguments)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(change_much, node, user, start)) for user in ADMINS]
    # eve asks beside them, on the same processes, and is refused
    threads += [threading.Thread(target=work, args=(be_refused, node, start)) for _ in ADMINS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    asked = ROUNDS + ROUNDS // 2
    expected = dict.fromkeys(ADMINS, asked) | {"eve": len(ADMINS) * ROUNDS}
    wait_until(
        lambda: all(len(events_of(node, user)) >= count for user, count in expected.items()),
        what="all events are written",
    )
    assert {len(events_of(node, user)) for user in ADMINS} == {asked}, "no request is audited twice"
    assert {event["change_offset"] for event in events_of(node, "eve")} == {None}
    changes = history(node, capsys, "--principal", "User:app")
    assert len(changes) == len(ADMINS) * (ROUNDS + 2 * (ROUNDS // 2))
    for each in changes:
        (who,) = each["requesters"]
        assert who["match"] == "EXACT"
        assert who["principal"] == f"User:{each['resource_name'].split('-')[0]}"
        assert who["client_id"] == "tool-of-" + who["principal"].removeprefix("User:")
        assert who["change_offset"] <= each["offset"]
    command = ["metadata", "history", str(node.metadata_directory), "--topic", "ben-1-0", "--audit"]
    assert run([*command, str(node.audit_directory)]) == ExitCode.OK
    assert capsys.readouterr().out.count("requested by User:ben from 127.0.0.1 (exact)") == 2


def test_a_change_that_is_not_made_leaves_its_event_without_an_offset(node: KustosNode) -> None:
    before = len(events_of(node, "ann"))
    with log_in(node, "ann") as client:
        refused = client.ask(CREATE_ACLS, 3, creations=(creation("bad", principal="no-colon"),))
        assert int(refused.results[0].error_code) != 0
        nothing = client.ask(DELETE_ACLS, 3, filters=(deletion("never-there"),))
        assert [int(each.error_code) for each in nothing.filter_results] == [0]
    wait_until(lambda: len(events_of(node, "ann")) >= before + 2, what="both are written")
    late = sorted(events_of(node, "ann"), key=lambda event: int(event["time_ms"]))[before:]
    assert [(each["api_name"], each["decision"], each["change_offset"]) for each in late] == [
        ("CreateAcls", "ALLOWED", None),
        ("DeleteAcls", "ALLOWED", None),
    ]


def test_who_hangs_up_at_once_is_named_all_the_same(
    node: KustosNode, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(ROUNDS):
        with log_in(node, "ben") as client:
            client.send(client.request(CREATE_ACLS, 3, creations=(creation(f"gone-{number}", "User:gone"),)))

    def all_named() -> bool:
        made = history(node, capsys, "--principal", "User:gone")
        named = [[(who["principal"], who["match"]) for who in each["requesters"]] for each in made]
        return bool(named) and all(each == [("User:ben", "EXACT")] for each in named)

    # an ACL that is made while the history is told has its event a moment later
    wait_until(all_named, what="every ACL that was made has its event")


def test_a_node_that_ends_amid_changes_has_written_down_who_asked(node: KustosNode) -> None:
    clients = [log_in(node, "cid") for _ in range(8)]
    before = len(events_of(node, "cid"))
    for number, client in enumerate(clients):
        client.send(client.request(CREATE_ACLS, 3, creations=(creation(f"end-{number}", "User:end"),)))
    # whoever was answered was decided; the others may never have been
    clients[0].receive()
    assert node.stop() == 0
    try:
        image = read_image(node.metadata_directory)
        made = [binding for binding in image.acls.values() if binding.entry.principal == "User:end"]
        assert made
        assert len(events_of(node, "cid")) - before >= len(made)
    finally:
        for client in clients:
            client.socket.close()
        node.start()
