"""What `kustos diff` says first: consequences in words, and a screen of regions."""

import json
from pathlib import Path

import pytest

from kustos.acl import AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms import AclForm, write_acls
from kustos.analysis import Probe, Rules, diff, headline_of
from kustos.cli.differences import consequence_text, rest_text
from kustos.cli.failures import ExitCode
from tests.unit.cli.cli_sets import Said, acl

DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED
WRITE, ALL = AclOperation.WRITE, AclOperation.ALL
SERVICES = [acl(f"team-{n % 50}.topic-{n}", who=f"User:svc-{n % 300}", operation=WRITE) for n in range(3000)]
SEVEN = [acl("orders", who=f"User:app-{n}", operation=WRITE) for n in range(7)]
OF_ALL = acl("*", who="User:*")
NO_ONE = acl("pii", who="User:svc-1", permission=DENY)
ADMIN = Rules(super_users=frozenset({"User:admin"}))

WORDS: list[tuple[list[AclBinding], list[AclBinding], list[str]]] = [
    ([], [OF_ALL], ["everyone may now READ and DESCRIBE every topic"]),
    (SERVICES, [*SERVICES, OF_ALL], ["everyone may now READ and DESCRIBE every topic"]),
    (
        [*SERVICES, NO_ONE],
        [*SERVICES, NO_ONE, OF_ALL],
        ["everyone may now READ and DESCRIBE every topic, except where 1 other ACL denies it"],
    ),
    (
        [*SERVICES, acl("*", who="User:*", operation=WRITE)],
        SERVICES,
        [
            "no principal except User:admin may WRITE and DESCRIBE any topic, "
            "except where 3,000 other ACLs allow it"
        ],
    ),
    (
        SERVICES,
        [*SERVICES, acl("team-", who="User:*", operation=ALL, permission=DENY, pattern_type=PREFIXED)],
        [
            "no principal except User:admin may do anything on topics that begin with `team-`: "
            "300 principals lose"
        ],
    ),
    (
        [*SERVICES, acl("*", who="User:*", operation=WRITE, permission=DENY)],
        SERVICES,
        ["WRITE on every topic is no longer denied to everyone except User:admin: 300 principals gain"],
    ),
    (SEVEN, [], ["7 principals lose WRITE and DESCRIBE on topic `orders`"]),
    (
        [acl("orders")],
        [acl("orders", host="10.0.0.0/8")],
        ["User:alice loses READ and DESCRIBE on topic `orders` from anywhere except 10.0.0.0/8"],
    ),
    (
        [],
        [acl("kafka-cluster", operation=AclOperation.ALTER, kind=ResourceType.CLUSTER)],
        ["User:alice may now ALTER and DESCRIBE on the cluster"],
    ),
    ([], [acl("*", kind=ResourceType.GROUP, operation=ALL)],
     ["User:alice may now do everything on every group that `*` stands for"]),
    (
        [acl("t", operation=AclOperation.DESCRIBE)],
        [acl("t", operation=ALL)],
        ["User:alice may now do everything but DESCRIBE on topic `t`"],
    ),
    ([OF_ALL], [OF_ALL, acl("x")], []),
    (
        [],
        [acl("news", who="User:*"), acl("t", who="User:bob")],
        ["everyone may now READ and DESCRIBE topic `news`",
         "User:bob may now READ and DESCRIBE topics `news` and `t`"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), WORDS)
def test_consequences_in_words(old: list[AclBinding], new: list[AclBinding], expected: list[str]) -> None:
    headline = headline_of(diff(old, new, ADMIN), old, new, ADMIN)
    assert [consequence_text(each) for each in (*headline.gained, *headline.lost)] == expected
    assert json.dumps(headline.to_json())


def test_the_worst_comes_first_and_gains_stand_apart_from_losses() -> None:
    cluster = acl("kafka-cluster", who="User:eve", operation=ALL, kind=ResourceType.CLUSTER)
    small = [acl(f"t-{n}", who=f"User:u{n}") for n in range(9)]
    new = [*small, cluster, acl("news", who="User:*")]
    headline = headline_of(diff(SEVEN, new), SEVEN, new)
    assert [consequence_text(each) for each in headline.gained[:2]] == [
        "User:eve may now do everything on the cluster",
        "everyone may now READ and DESCRIBE topic `news`",
    ]
    assert rest_text(headline.gained_rest) == (
        "in addition, 8 principals gain READ or DESCRIBE on topics (8 regions)"
    )
    assert [each.principals for each in headline.lost] == [7]


def test_what_everyone_gains_is_not_cut_for_what_one_principal_does() -> None:
    mine = [acl(f"t-{n}", host=f"10.0.0.{n + 1}") for n in range(40)]
    everyones = acl("kafka-cluster", who="User:*", operation=ALL, kind=ResourceType.CLUSTER)
    found = diff([], [*mine, everyones], regions_max=5)
    assert found.is_cut
    kinds = {change.region.resource_type for change in found.changes}
    assert kinds == {ResourceType.TOPIC, ResourceType.CLUSTER}


def test_what_the_default_allows_is_not_said_to_be_denied() -> None:
    named = [acl("a", who="User:bob"), acl("b", who="User:carol")]
    rules = Rules(allow_everyone_if_no_acl_found=True)
    headline = headline_of(diff([*named, OF_ALL], named, rules), [*named, OF_ALL], named, rules)
    assert headline.lost
    # no ACL names it any more, so that everyone may do everything with it
    elsewhere = Probe("User:someone", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "c")
    assert not any(elsewhere in each.region for each in headline.lost)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name, acls in (("old", SERVICES), ("new", [*SERVICES, OF_ALL]), ("none", [])):
        (tmp_path / f"{name}.yaml").write_text(write_acls(acls, AclForm.YAML))
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.mark.parametrize(
    "arguments", [("old.yaml", "new.yaml"), ("old.yaml", "none.yaml"), ("new.yaml", "old.yaml")]
)
def test_a_large_difference_is_one_screen(here: Path, kustos: Said, arguments: tuple[str, str]) -> None:
    exit_code, out, _ = kustos("diff", *arguments, "--exit-code")
    assert exit_code == ExitCode.NO
    assert len(out.splitlines()) <= 40, out
    assert "`--full` shows all" in out


@pytest.mark.slow
def test_what_is_left_out_is_counted_and_full_shows_it(here: Path, kustos: Said) -> None:
    brief = kustos("diff", "old.yaml", "new.yaml")[1]
    whole = kustos("diff", "old.yaml", "new.yaml", "--full")[1]
    document = kustos.document("diff", "old.yaml", "new.yaml")[1]
    regions = len(document["changes"])
    assert sum(line.startswith("gained ") for line in brief.splitlines()) == 4
    assert f"not shown: {regions - 4} regions gained, 0 lost" in brief
    assert sum(line.startswith("gained ") for line in whole.splitlines()) == regions
    assert "not shown" not in whole
    gained = document["headline"]["gained"]
    assert [each["regions"] for each in gained["consequences"]] == [regions]
    assert gained["consequences"][0]["claim"] == "ALLOWED"
    assert gained["consequences"][0]["example"]["change"] == "ADDED"
    assert gained["rest"]["regions"] == 0


def test_counts_of_a_cut_difference_are_said_to_be_the_least(here: Path, kustos: Said) -> None:
    out = " ".join(kustos("diff", "old.yaml", "none.yaml", "--regions-max", "9")[1].split())
    assert "in addition, at least 6 principals lose WRITE or DESCRIBE on topics (6 regions)" in out
    assert "0 regions gained, 9 lost and more, see `--regions-max`" in out
    assert "not shown: 0 regions gained, 5 lost; `--full` shows these" in out
