"""`kustos decide` over files answers as Kafka's own StandardAuthorizer does, and names the same rule."""

import json
import secrets
from pathlib import Path

import pytest

from kustos.acl import AclBinding
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.run import run
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.oracle import Oracle
from testkit.differential.replay import answers_of_kafka
from testkit.differential.worlds import Add, Ask, Remove, Snapshot, Start, Step

SHAPE = Shape(acl_count=140, question_count=400, plain=True)
WORLDS = 12
FORMS = {AclForm.JSON_LINES: "acls.jsonl", AclForm.YAML: "acls.yaml"}
FIELDS = ("principal", "host", "operation", "resource_type", "resource_name")


def settled(steps: list[Step]) -> tuple[Start, dict[int, AclBinding], list[Ask]]:
    """Return how a world starts, which ACLs it has in the end, and all that was asked meanwhile."""
    start, acls, asks = Start("", False), dict[int, AclBinding](), list[Ask]()
    for step in steps:
        match step:
            case Start():
                start = step
            case Add(number, binding):
                acls[number] = binding
            case Remove(number):
                del acls[number]
            case Snapshot(snapshot):
                acls = {acl.number: acl.binding for acl in snapshot}
            case Ask(principal) if "|" not in principal:
                asks.append(step)
    return start, acls, asks


def decided(
    directory: Path, form: AclForm, start: Start, acls: list[AclBinding], asks: list[Ask]
) -> list[str]:
    """Return the answers to files, in the words of the oracle."""
    files = directory / FORMS[form], directory / "requests.jsonl", directory / "answers.jsonl"
    files[0].write_text(write_acls(acls, form), encoding="utf-8")
    values = [(ask.principal, ask.host, str(ask.operation), str(ask.resource_type), ask.name) for ask in asks]
    lines = [json.dumps(dict(zip(FIELDS, each, strict=True))) + "\n" for each in values]
    files[1].write_text("".join(lines), encoding="utf-8")
    arguments = ["--super-users", start.super_users]
    arguments += ["--allow-everyone-if-no-acl-found"] if start.default_allow else []
    for option, file in zip(("--acls", "--requests", "--answers"), files, strict=True):
        arguments += [option, str(file)]
    assert run(["decide", *arguments]) == 0
    answers = [json.loads(line) for line in files[2].read_text(encoding="utf-8").split("\n")[:-1]]
    return [
        answer["result"] if ask.name is None else f"{answer['result']}\t{answer['rule']}"
        for ask, answer in zip(asks, answers, strict=True)
    ]


@pytest.mark.parametrize("form", list(FORMS))
def test_files_are_decided_as_kafka_decides(form: AclForm, tmp_path: Path) -> None:
    seed = secrets.randbelow(10**9)
    with Oracle() as oracle:
        for number in range(WORLDS):
            start, acls, asks = settled(list(WorldMaker(seed + number, SHAPE).steps()))
            steps: list[Step] = [start, *[Add(*each) for each in acls.items()], *asks]
            theirs = answers_of_kafka(steps, oracle)
            ours = decided(tmp_path, form, start, list(acls.values()), asks)
            assert len(asks) > 100
            for ask, mine, their in zip(asks, ours, theirs, strict=True):
                assert (ask, mine) == (ask, their), f"seed {seed + number}"
