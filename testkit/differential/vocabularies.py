"""What a world speaks of: names, principals and hosts, in styles that real ACL sets have or bugs like."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from testkit.differential.host_texts import HostTexts

PIECES = ["a", "b", "ab", "orders", "-", ".", "é", "日本", "\U0001d518", "\uffe0", "h", "hard", "hardcode"]
STARRY = ["*", "*", "*a", "*ab", "**", "*-"]
ABOVE = ["+", "+a", ",", "-*", "+*"]
"""Names that sort right above `*`."""
LOW = ["!", "!a", "(x", "#", "+a", " b", ")", ")*", "\x01", '"', "()", "!*"]
"""Names that mostly sort below `*`: beyond Kafka."""
WIDE = ["\ue000", "\uff5e", "\ufffd", "\U00010000", "\U0001d518", "\U0001d519", "\U0010ffff", "e\u0301", "é"]
"""UTF-16 sorts the astral ones below the first three, code points above; two share their first half."""
PRINCIPALS = ["User:alice", "User:bob", "Group:ops", "User:a:b", "User:Zoë", "User:\U0001d518", "User:\uffe0"]
PRINCIPALS += ["user:alice", "Group:*", "User:", ":", ":*", "User: alice", "User:a:b:c", "User:**", "User::"]
HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.2.3", "0.0.0.0", "10.255.255.255", "10.0.0.0"]
HOSTS += ["0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5", "2001:db8:0:0:0:0:0:4", "192.168.0.9"]
ACL_HOSTS = [
    *["10.0.0.1", "10.0.0.2", "10.1.2.3", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5", "nonsense", "::1"],
    *["10.0.0.0/8", "10.0.0.2/31", "10.1.2.3/32", "0.0.0.0/0", "10.0.0.1/08", "2001:db8::/32", "::/0"],
    *["::1/128", "2001:db8::5/+127", "10.0.0.0/33", "10.0.0/8", "::ffff:10.0.0.1/104", "10.0.0.0/", "/8"],
]


@dataclass(slots=True)
class Vocabulary:
    """`tails` lengthen names; `named_hosts_share` of the ACLs are not for every host."""

    names: list[str]
    principals: list[str]
    tails: list[str]
    hosts: list[str] = field(default_factory=lambda: HOSTS)
    acl_hosts: list[str] = field(default_factory=lambda: ACL_HOSTS)
    named_hosts_share: float = 0.4
    cut_share: float = 0.4
    """Of the patterns that are a beginning of a name."""
    acl_factor: int = 1
    """Of how many ACLs a world begins with."""


def dense(rng: Random) -> Vocabulary:
    """Few short names, so that every rule meets every other."""

    def name() -> str:
        if rng.random() < 0.12:
            return rng.choice([*STARRY, *STARRY, *ABOVE])
        return "".join(rng.choices(PIECES, k=rng.choice([1, 1, 2, 3, 4])))

    names = [name() for _ in range(rng.randint(3, 12))]
    return Vocabulary(names, rng.sample(PRINCIPALS, rng.randint(2, 5)), PIECES)


def low(rng: Random) -> Vocabulary:
    """Names below `*`, among others."""
    made = dense(rng)
    made.names += rng.sample(LOW, 4)
    made.tails = [*PIECES, *LOW]
    return made


def wide(rng: Random) -> Vocabulary:
    """Letters whose order and halves differ between UTF-16 and code points."""
    names = ["".join(rng.choices(WIDE, k=rng.choice([1, 1, 2, 3]))) for _ in range(rng.randint(4, 14))]
    principals = [f"User:{''.join(rng.choices(WIDE, k=rng.randint(1, 2)))}" for _ in range(4)]
    return Vocabulary(names, principals, WIDE, cut_share=0.3)


def nested(rng: Random) -> Vocabulary:
    """Long names of two letters, each beginning of which may be a prefix: chains of every length."""
    stem = "".join(rng.choices("ab.", k=rng.choice([20, 60, 240])))
    names = [stem[: rng.randint(1, len(stem))] for _ in range(8)]
    names += [f"{name}{rng.choice('abc')}" for name in names]
    return Vocabulary(names, rng.sample(PRINCIPALS, 3), list("abc."), cut_share=0.8)


def estate(rng: Random) -> Vocabulary:
    """A company: topics under `env.team.domain.`, services of teams, networks of sites."""
    teams = rng.sample(["payments", "orders", "risk", "web", "mail", "pay", "data"], 4)
    places = [f"{rng.choice(['prod', 'prod', 'test'])}.{team}" for team in teams]
    entities = ["invoice", "ledger", "refund", "events", "events-dlq", "cdc.public.users", "v1"]
    topics = {f"{rng.choice(places)}.{rng.choice(entities)}.{rng.choice(entities)}" for _ in range(24)}
    beginnings = {start + "." for topic in topics for start in accumulate(topic.split("."), "{}.{}".format)}
    groups = [f"{place}.{rng.choice(['sink', 'connect-s3', 'api'])}" for place in places]
    principals = [f"User:svc-{team}-{rng.choice(entities)}" for team in teams]
    principals += [f"User:CN={team},OU=kafka,O=Bank: Ltd.,C=DE" for team in teams[:2]]
    networks = [f"10.{rng.randint(0, 3)}.0.0/16", f"10.1.{rng.randint(0, 9)}.0/24", "10.0.0.0/8", "10.1.2.3"]
    hosts = [f"10.{rng.randint(0, 3)}.{rng.randint(0, 9)}.{rng.randint(1, 9)}" for _ in range(6)]
    names = [*sorted(topics), *sorted(beginnings), *groups]
    return Vocabulary(
        names, principals, [".dlq", "-retry", "s", ".v2"], [*hosts, "10.1.2.3"], networks, 0.3, cut_share=0.1
    )


def ranges(rng: Random) -> Vocabulary:
    """Random addresses and ranges around each other, many of them oddly written."""
    made = dense(rng)
    texts = HostTexts(rng)
    # in the order made: that of a set would differ from one process to the next
    made.hosts = list(dict.fromkeys(texts.client() for _ in range(8)))
    made.acl_hosts = [*dict.fromkeys(texts.pattern() for _ in range(30)), *made.hosts[:3]]
    made.named_hosts_share = 0.85
    return made


def huge(rng: Random) -> Vocabulary:
    """One principal who has nearly every ACL, beside one who has few."""
    made = dense(rng)
    made.names += [f"t{number:02}{rng.choice(PIECES)}" for number in range(40)]
    made.principals = ["User:etl"] * 9 + ["User:bob"]
    return made


def crowded(rng: Random) -> Vocabulary:
    """One name and one principal with ACLs of a hundred hosts and ranges: cells that hold very much."""
    made = ranges(rng)
    hosts = [f"10.0.{rng.randint(0, 1)}.{number}" for number in range(8)]
    made.names = rng.sample(made.names, 2)
    made.principals = made.principals[:1]
    made.hosts = [*hosts, *made.hosts[:3]]
    made.acl_hosts += [*hosts, *(f"{host}/{rng.randint(8, 32)}" for host in hosts * 8)]
    made.named_hosts_share, made.cut_share, made.acl_factor = 0.97, 0.1, 4
    return made


STYLES: dict[str, Callable[[Random], Vocabulary]] = {
    style.__name__: style for style in (dense, wide, nested, estate, ranges, huge, crowded)
}
"""The styles that Kafka can decide; `low` is beyond it."""
WEIGHTS = {"dense": 4, "wide": 1, "nested": 2, "estate": 3, "ranges": 2, "huge": 1, "crowded": 1}
