"""Delegation tokens by Kafka's own classes and by ours, as the same lines of text."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from kustos.acl import KafkaPrincipal
from kustos.metadata.control import (
    ApiError,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
    TokenRules,
    concerns,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
    sweep_tokens,
)
from kustos.metadata.control.token_secrets import TokenIndex, TokenSecret
from kustos.metadata.features import metadata_version_name
from kustos.metadata.image import ImageBuilder, MetadataImage, image_of, records_at
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord, decode_record, encode_record
from kustos.runtime import SystemEntropy
from kustos.wire import ErrorCode, uuid_of_text
from testkit.kafka.compiled import java_program

PROBE_TIMEOUT_S = 120
RECORDS_FROM = {"create": 10, "renew": 2, "expire": 2, "sweep": 2}
"""Where the records begin in a reply."""
REPLYING = {*RECORDS_FROM, "describe", "loss"}
Line = tuple[str, ...]


def kafkas_replies(lines: Sequence[Line]) -> list[list[str]]:
    """Run all lines through Kafka's classes; return its replies."""
    run = subprocess.run(
        java_program(Path(__file__).with_name("TokenProbe.java"), options=["-Dfile.encoding=UTF-8"]),
        input="".join("\t".join(line) + "\n" for line in lines),
        capture_output=True, text=True, encoding="utf-8", timeout=PROBE_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return [line.split("\t") for line in run.stdout.splitlines()]


class GivenEntropy(SystemEntropy):
    """Makes the id that Kafka made."""

    def __init__(self, token_id: str | None) -> None:
        self._token_id = token_id

    def uuid(self) -> UUID:
        return super().uuid() if self._token_id is None else uuid_of_text(self._token_id)


class OurSide:
    """Answers lines as the probe does, in the worlds that Kafka's records make."""

    def __init__(self) -> None:
        self.image: MetadataImage = image_of([])
        self.rules = TokenRules()
        self.index = TokenIndex(None, SystemEntropy())
        self.now_ms = 0
        self.hmacs: list[bytes] = []
        self.ids: list[str] = []

    def answer(self, line: Line, theirs: Sequence[str]) -> list[str]:
        """Return our reply; `theirs` gives the ids that Kafka drew."""
        match line[0]:
            case "create":
                return self._create(line, theirs[8] if theirs[0] == "NONE" else None)
            case "renew" | "expire":
                return self._change(line)
            case "sweep":
                swept = sweep_tokens(self.image, self.now_ms)
                return ["NONE", str(swept.results[0]).lower(), *map(hexed, swept.records)]
            case "describe":
                return self._describe(line)
            case _:
                return self._loss(int(line[1]))

    def begin(self, line: Line) -> None:
        """Take in a line that has no reply."""
        if line[0] == "time":
            self.now_ms = int(line[1])
            return
        secret = None if line[1] == "-" else TokenSecret.of(line[1])
        self.rules = TokenRules(secret, int(line[2]), int(line[3]))
        self.index = TokenIndex(secret, SystemEntropy())
        self.image = image_of([FeatureLevelRecord("metadata.version", int(line[4]))])
        self.now_ms = int(line[5])
        self.hmacs, self.ids = [], []

    def replay(self, records: Sequence[MetadataRecord]) -> None:
        """Apply what Kafka's side appended."""
        builder = ImageBuilder(self.image)
        self.index.apply(builder.replay_all(records))
        self.image = builder.build(0, 0)

    def _create(self, line: Line, token_id: str | None) -> list[str]:
        _, requester, owner_type, owner_name, lifetime, *renewers = line
        caller = KafkaPrincipal.parse(requester)
        asked = TokenCreation(
            caller,
            KafkaPrincipal(owner_type, owner_name) if owner_name else caller,
            tuple(KafkaPrincipal(*pair) for pair in zip(renewers[::2], renewers[1::2], strict=True)),
            int(lifetime),
        )
        outcome = create_token(self.image, asked, self.rules, self.now_ms, GivenEntropy(token_id))
        (made,) = outcome.results
        if made.error is None:
            self.hmacs.append(made.hmac)
            self.ids.append(token_id or "")
        return [*created(made), *map(hexed, outcome.records)]

    def _change(self, line: Line) -> list[str]:
        caller, which, period_ms = KafkaPrincipal.parse(line[1]), line[2], int(line[3])
        presented = bytes.fromhex(which[1:]) if which.startswith("x") else self.hmacs[int(which)]
        if line[0] == "renew":
            renewal = TokenRenewal(caller, presented, period_ms)
            outcome = renew_token(self.image, renewal, self.rules, self.index.find, self.now_ms)
        else:
            expiry = TokenExpiry(caller, presented, period_ms)
            outcome = expire_token(self.image, expiry, self.rules, self.index.find, self.now_ms)
        (result,) = outcome.results
        return [*changed(result), *map(hexed, outcome.records)]

    def _describe(self, line: Line) -> list[str]:
        caller = KafkaPrincipal.parse(line[1])
        owners = None if line[2] == "*" else [KafkaPrincipal.parse(text) for text in line[2].split(",")]
        allowed_tokens = {self.ids[int(number)] for number in line[3].split(",") if number}
        allowed_owners = set(line[4].split(","))
        found = describe_tokens(self.image, self.rules.secret or TokenSecret(b"?"), owners)
        shown = sorted(
            each.token.token_id
            for each in found
            if concerns(each.token, [caller])
            or each.token.token_id in allowed_tokens
            or each.token.owner in allowed_owners
        )
        return ["NONE", *shown]

    def _loss(self, level: int) -> list[str]:
        told: list[str] = []
        records = list(records_at(self.image, level, told.append))
        prefix = (
            "Metadata has been lost because the following could not be represented in metadata.version "
            f"{metadata_version_name(level)}: "
        )
        return [prefix + told[0] if told else "-", *sorted(map(hexed, records[1:]))]


def hexed(record: MetadataRecord) -> str:
    return encode_record(record).hex()


def error_name(error: ApiError | None) -> str:
    return (ErrorCode.none if error is None else error.code).name.upper()


def created(made: TokenCreateResult) -> list[str]:
    owner, requester, token = made.owner, made.requester, made.token
    times = (
        (0, 0, 0)
        if token is None
        else (token.issue_timestamp_ms, token.expiration_timestamp_ms, token.max_timestamp_ms)
    )
    return [
        error_name(made.error), owner.principal_type, owner.name, requester.principal_type, requester.name,
        *map(str, times), "" if token is None else token.token_id, made.hmac.hex(),
    ]  # fmt: skip


def changed(result: TokenChangeResult) -> list[str]:
    return [error_name(result.error), str(result.expiry_timestamp_ms)]


def differences(lines: Sequence[Line]) -> list[tuple[Line, list[str], list[str]]]:
    """Return the lines that both sides answer differently, with Kafka's and our reply."""
    replies = iter(kafkas_replies(lines))
    ours = OurSide()
    found = []
    for line in lines:
        if line[0] not in REPLYING:
            ours.begin(line)
            continue
        theirs = next(replies)
        mine = ours.answer(line, theirs)
        if comparable(line, theirs) != comparable(line, mine):
            found.append((line, theirs, mine))
        if line[0] in RECORDS_FROM:
            ours.replay([decode_record(bytes.fromhex(text)) for text in theirs[RECORDS_FROM[line[0]] :]])
    return found


def comparable(line: Line, reply: list[str]) -> list[str]:
    """Return a reply without what neither side promises: which tokens a pass takes first, and their order."""
    if line[0] == "sweep":
        return [*reply[:2], *sorted(reply[2:])] if reply[1] == "false" else [*reply[:2], str(len(reply))]
    return [reply[0], *sorted(reply[1:])] if line[0] == "loss" else reply


PRINCIPALS = ("User:alice", "User:bob", "User:carol", "User:*", "Group:alice", "User:a:b", ":x", "User:ö")
PERIODS = ("-9223372036854775808", "-1", "0", "1", "7", "60", "100", "1000", "4611686018427387904")


def random_world(chance: random.Random, steps: int) -> list[Line]:
    """Return lines that work on a world of its own; its clock moves on, and now and then back."""
    secret = chance.choice(["s3cret", "gehëim", "k" * 200, "s3cret", "s3cret", "-"])
    level = chance.choice(["30", "30", "30", "14", "13"])
    now_ms = chance.choice([0, 1_000, 1_790_000_000_000])
    limits = (chance.choice(["1", "100", "1000", "604800000"]), chance.choice(["1", "60", "100", "86400000"]))
    lines: list[Line] = [("new", secret, *limits, level, str(now_ms))]
    made = 0
    for _ in range(steps):
        kind = chance.choice(
            ["create"] * 4 + ["renew"] * 4 + ["expire"] * 3 + ["time"] * 3 + ["sweep"] + ["describe"] * 2
        )
        who = chance.choice(PRINCIPALS)
        works = secret != "-" and int(level) >= 14
        which = (
            str(chance.randrange(made))
            if made and chance.random() < 0.93
            else "x" + chance.randbytes(64).hex()
        )
        match kind:
            case "create":
                owner = chance.choice(
                    [("", ""), ("User", ""), ("User", "alice"), ("Group", "b:c"), ("a:b", "c"), ("", "x")]
                )
                renewers = [
                    part
                    for _ in range(chance.choice([0, 0, 1, 2]))
                    for part in chance.choice(PRINCIPALS).split(":", 1)
                ]
                lines.append(("create", who, *owner, chance.choice(PERIODS), *renewers))
                made += works and all(kind == "User" for kind in renewers[::2])
            case "renew" | "expire":
                lines.append((kind, who, which, chance.choice(PERIODS)))
            case "time":
                now_ms += chance.choice([-5, 1, 1, 10, 50, 100, 101, 1000])
                lines.append(("time", str(now_ms)))
            case "describe":
                owners = "*" if chance.random() < 0.4 else ",".join(chance.sample(PRINCIPALS, 2))
                tokens = ",".join(str(n) for n in range(made) if chance.random() < 0.2)
                lines.append(("describe", who, owners, tokens, ",".join(chance.sample(PRINCIPALS, 1))))
            case _:
                lines.append(("sweep",))
    return lines
