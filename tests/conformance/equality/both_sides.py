"""Both sides, started with the same world in them, and a story played to both."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kustos.metadata.features import LATEST_LEVEL
from kustos.protocol.rows import TABLE
from kustos.wire import (
    Message,
    read_response_header,
    request_codec,
    response_codec,
    response_header_is_flexible,
)
from kustos.wire.api_keys import ApiKey, api_name
from testkit.equality.sides import GrowingLog, Side
from testkit.equality.stories import Made, Run, Said, Step, TopicId, Wrapped, message_of
from testkit.kafka import SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.telemetry import TelemetryPlugin
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import DeadlineExceededError, wait_until
from tests.conformance.equality import audit, cases_tokens, normal, world

SETTLES_WITHIN_S = 30.0
"""A broker applies what its controller has committed within milliseconds."""

UNKNOWN_TOPIC = 3

WRITES_ALL = {f"kustos.audit.{each}.max.bytes.per.hour": str(1 << 40) for each in ("denied", "allowed")}
"""A request is repeated until both sides agree; kustos would sum up what one user requests too often."""

SENT_AGAIN = {api for api, row in TABLE.items() if row.repeatable} - {ApiKey.SHARE_GROUP_HEARTBEAT}
"""What a client may send again with the same bytes, which kustos then does not read. To a share group the
second would be a late repetition of the first, which has moved the member on."""

KEEPS_ALL = {"log.retention.ms": "-1"}
"""The records are of 2023: after some minutes, not the same on both sides, a broker would delete them."""


@dataclass(slots=True)
class Asked:
    """One request of a run: what both sides said, in their normal forms, and what they wrote down."""

    step: Step
    reference: Any
    kustos: Any
    reference_audit: Counter[audit.Audited]
    client_id: str
    kustos_audit: Counter[audit.Audited] = field(default_factory=Counter)


class BothSides:
    """Where stories are played."""

    def __init__(self, reference: Side, kustos: Side, log: GrowingLog) -> None:
        self.reference = reference
        self.kustos = kustos
        self.log = log
        self.number = 0
        self.rules = normal.Rules(normal.RULES)

    @property
    def sides(self) -> tuple[Side, Side]:
        """The reference, then kustos."""
        return self.reference, self.kustos

    def play(self, run: Run) -> list[Asked]:
        """Return what a story came to; it ends where the sides part ways over whether to answer."""
        asked: list[Asked] = []
        answers: dict[str, list[Message | None]] = {side.name: [] for side in self.sides}
        for step in run.story.steps:
            self.log.new_lines()
            user = step.user or run.user
            if step.settles:
                last: list[Asked] = []

                def settled(step: Step = step, last: list[Asked] = last) -> bool:
                    self.log.new_lines()
                    last[:] = [self.ask(run, step, {name: list(said) for name, said in answers.items()})]
                    said = last[0].reference
                    if step.parted is not None and step.parted(said):
                        return True
                    if step.good and set(codes_of(said)) - {0}:
                        return False
                    if step.until is not None and not step.until(said):
                        return False
                    if (
                        step.count is not None
                        and sum(len(item["acls"]) for item in said["resources"]) != step.count
                    ):
                        return False
                    return bool(normal.canonical(said) == normal.canonical(last[0].kustos))

                try:
                    wait_until(settled, timeout_s=SETTLES_WITHIN_S, what=step.api.name)
                except DeadlineExceededError:
                    asked.append(last[0])
                    break
                asked.append(last[0])
                for side in self.sides:
                    answers[side.name].append(None)
            else:
                asked += self.ask_again(run, step, answers)
            if step.hang_up_after:
                for side in self.sides:
                    side.hang_up(user)
        return asked

    def ask_again(self, run: Run, step: Step, answers: dict[str, list[Message | None]]) -> list[Asked]:
        """Send a request to both sides, once more if clients repeat it, and return what they answered.

        All that they wrote down counts with the first, as the bytes are the same.
        """
        first = self.ask(run, step, answers)
        if step.api not in SENT_AGAIN or step.silent or step.body is not None:
            return [first]
        if UNKNOWN_TOPIC in codes_of(first.reference):
            # a Metadata may have created it, a moment later
            return [first]
        before = {name: said[:-1] for name, said in answers.items()}
        again = self.ask(run, step, before, first.client_id)
        first.reference_audit += again.reference_audit
        again.reference_audit, again.client_id = Counter(), f"{first.client_id} again"
        return [first, again]

    def ask(
        self, run: Run, step: Step, answers: dict[str, list[Message | None]], client_id: str | None = None
    ) -> Asked:
        """Send one request to both sides and return their answers."""
        if client_id is None:
            self.number += 1
            client_id = f"request-{self.number}"
        user = step.user or run.user
        version = run.version_of(step)
        codec = request_codec(step.api, version)
        for side in self.sides:
            if step.body is not None:
                side.send_body(user, step.api, codec, step.body, client_id)
                continue

            def fill(value: Any, side: Side = side) -> Any:
                if isinstance(value, TopicId):
                    return value.on(side.topic_ids)
                if isinstance(value, Wrapped):
                    return value.frame(client_id, fill)
                if isinstance(value, Made):
                    return value.filled(fill)
                if isinstance(value, Said):
                    return fill(value.among(answers[side.name]))
                return value.replace("{run}", run.tag) if isinstance(value, str) else value

            side.send(user, step.api, codec, message_of(codec.root, step.fields, fill), client_id)
        said: list[Any] = []
        for side in self.sides:
            if step.silent:
                said.append(self.silence(side, user))
                continue
            answer = side.answer(user, step.api, version)
            answers[side.name].append(answer)
            names = self.names(side, step.api, answer)
            # of an Envelope, what is in it
            (api,) = [inner.api for inner in _wrapped(step)] or [step.api]
            normalizer = normal.Normalizer(side, api, names, self.rules)
            said.append(normalizer.normal(_unwrapped(step, answer)))
        lines = audit.of_lines(self.log.new_lines())
        # its controller authorizes topics that are made by being asked for once more, a moment later
        about = {api_name(each) for each in (step.api, *(inner.api for inner in _wrapped(step)))}
        lines = [line for line in lines if line.request in about]
        return Asked(step, said[0], said[1], Counter(lines), client_id)

    def silence(self, side: Side, user: str) -> str:
        """Return whether the connection is still open after a request that has no answer."""
        if user not in side.links:
            return "the connection is closed"
        # a question that only upstream can answer, and that nobody has to authorize
        codec = request_codec(ApiKey.METADATA, 4)
        side.send(user, ApiKey.METADATA, codec, codec.new(topics=[]), "set-up")
        answer = side.answer(user, ApiKey.METADATA, 4)
        return "the connection is closed" if answer is None else "the connection stays open"

    def names(self, side: Side, api: ApiKey, answer: Message | None) -> Mapping[bytes, str]:
        """Return topic id → name, brought up to date by an answer that speaks of topics just made."""
        if answer is not None and api in {ApiKey.CREATE_TOPICS, ApiKey.METADATA}:
            for topic in answer.topics:
                if topic.get("topic_id") and topic.name and topic.error_code == 0:
                    side.topic_ids[topic.name] = topic.topic_id
        return {topic_id: name for name, topic_id in side.topic_ids.items()}

    def prepare(self) -> None:
        """Make the topics, the records and the ACLs of the world, on both sides."""
        for side in self.sides:
            self.must(side, ApiKey.CREATE_ACLS, 3, {"creations": world.creations()})
            made = [
                {"name": name, "num_partitions": count, "replication_factor": 1}
                for name, count in world.TOPICS.items()
            ]
            self.must(side, ApiKey.CREATE_TOPICS, 5, {"topics": made, "timeout": 10_000})
        for side in self.sides:
            # a coordinator's own topic comes to be when it is first looked for
            self._eventually(side, ApiKey.FIND_COORDINATOR, 3, {"key": "g-first", "key_type": 0})
            self._eventually(side, ApiKey.FIND_COORDINATOR, 3, {"key": "t-first", "key_type": 1})
            share = {"coordinator_keys": [world.SHARE_KEY], "key_type": 2}
            self._eventually(side, ApiKey.FIND_COORDINATOR, 6, share)
            idempotent = {"transactional_id": None, "producer_id": -1, "producer_epoch": -1}
            self._eventually(side, ApiKey.INIT_PRODUCER_ID, 4, idempotent)
            in_transaction = idempotent | {"transactional_id": "t-first", "transaction_timeout": 60_000}
            self._eventually(side, ApiKey.INIT_PRODUCER_ID, 4, in_transaction)
            topics = [
                {"name": name, "partition_data": [{"index": 0, "records": world.records(b"one", b"two")}]}
                for name in world.TOPICS
            ]
            fields = {"topic_data": topics, "acks": -1, "timeout": 5000}
            self._eventually(side, ApiKey.PRODUCE, 9, fields)
            self._await_world(side)

    def _await_world(self, side: Side) -> None:
        """Return when a side knows its topics and ACLs."""

        def has_acls() -> bool:
            answer = self.must(side, ApiKey.DESCRIBE_ACLS, 3, world.EVERY_ACL)
            return sum(len(resource.acls) for resource in answer.resources) == len(world.ACLS)

        def has_topics() -> bool:
            return side.learn_topics(world.SUPER).keys() >= world.TOPICS.keys()

        wait_until(has_topics, timeout_s=SETTLES_WITHIN_S, what=f"topics at {side.name}")
        wait_until(has_acls, timeout_s=SETTLES_WITHIN_S, what=f"ACLs at {side.name}")

    def must(self, side: Side, api: ApiKey, version: int, fields: Mapping[str, Any]) -> Message:
        """Return the answer to a request of the super user; raise ConnectionError where there is none."""
        codec = request_codec(api, version)
        message = message_of(codec.root, fields, lambda value: value)
        answer = side.ask(world.SUPER, api, codec, message)
        if answer is None:
            raise ConnectionError(f"{side.name} closes the connection of its super user")
        return answer

    def _eventually(self, side: Side, api: ApiKey, version: int, fields: Mapping[str, Any]) -> None:
        def done() -> bool:
            answer = self.must(side, api, version, fields).to_dict()
            return not set(codes_of(answer)) - {0}

        wait_until(done, timeout_s=SETTLES_WITHIN_S, what=f"{api.name} at {side.name}")


def _wrapped(step: Step) -> list[Wrapped]:
    """Return the request that a step has in an Envelope, if it does."""
    return [value for value in step.fields.values() if isinstance(value, Wrapped)]


def _unwrapped(step: Step, answer: Message | None) -> Message | None:
    """Return an answer with what is in an Envelope read, too."""
    for inner in _wrapped(step):
        if answer is not None and answer.response_data is not None:
            codec = response_codec(inner.api, inner.version)
            flexible = response_header_is_flexible(inner.api, codec)
            correlation_id, body_at = read_response_header(answer.response_data, flexible)
            assert correlation_id == inner.correlation_id
            answer.response_data = codec.decode(answer.response_data, body_at).message
    return answer


def codes_of(value: Any) -> Iterator[int]:
    """Yield every error code in a normal answer."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "error_code":
                yield item
            else:
                yield from codes_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from codes_of(item)


@contextmanager
def both_sides(directory: Path, *, auto_create_topics: bool) -> Iterator[tuple[BothSides, KustosNode]]:
    """Start both sides and give them their world."""
    users = world.PASSWORDS
    plugins = [TelemetryPlugin.made_in(directory / name) for name in ("plugin", "upstream-plugin")]
    reference_node = KafkaNode(
        directory / "reference",
        NodeSettings(
            listeners=(SASL_PLAINTEXT,),
            users=users,
            authorizer=STANDARD_AUTHORIZER,
            super_users=(f"User:{world.SUPER}",),
            auto_create_topics=auto_create_topics,
            authorizer_log_level="TRACE",
            properties={**cases_tokens.SECRET, **KEEPS_ALL, **plugins[0].properties},
            jars=(plugins[0].jar,),
        ),
    )
    upstream = KafkaNode(
        directory / "upstream",
        NodeSettings(
            auto_create_topics=auto_create_topics,
            properties={**KEEPS_ALL, **plugins[1].properties},
            jars=(plugins[1].jar,),
        ),
    )
    with ExitStack() as stack, ThreadPoolExecutor() as starters:
        starting = [starters.submit(node.start) for node in (reference_node, upstream)]
        stack.callback(upstream.kill)
        stack.callback(reference_node.kill)
        for start in starting:
            start.result()
        settings = KustosSettings(
            users=users, properties=cases_tokens.SECRET | WRITES_ALL, metadata_version=LATEST_LEVEL
        )
        node = stack.enter_context(KustosNode(directory / "kustos", upstream.bootstrap, settings))
        reference = stack.enter_context(Side("Kafka", reference_node.bootstrap, dict(users)))
        kustos = stack.enter_context(Side("kustos", node.bootstrap, dict(users)))
        made = BothSides(reference, kustos, GrowingLog(reference_node.authorizer_log))
        made.prepare()
        yield made, node
