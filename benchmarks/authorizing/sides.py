"""Who answers: kustos in its own process, Kafka's StandardAuthorizer in the oracle.

Rounds alternate, so that a noisy machine is noisy for both. Theirs is warmed up until its compiler has
settled, gets its arguments ready-made and builds no audit line.
"""

from collections.abc import Callable
from itertools import cycle, islice
from types import TracebackType
from typing import Self
from uuid import UUID

from benchmarks.authorizing.loads import Load
from benchmarks.figures import QUICK, timed
from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizerSession,
    Decision,
    StandardAuthorizer,
)
from testkit.differential.oracle import Oracle
from testkit.differential.worlds import Ask

WARM_UP_MS = 1_500 if QUICK else 5_000
HEAP_MB_MIN = 2_048
HEAP_BYTES_PER_ACL = 1_500
"""Room for two snapshots and the garbage of reading one."""

NEVER_ASKED = "asked-before"
"""A name that opens sessions: no question of a load asks about it."""

Timed = tuple[int, str]
"""Nanoseconds of a round and its answers, a letter each."""


class Theirs:
    """Kafka's authorizer with the ACLs and the questions of a load; a context manager."""

    def __init__(self, size: int) -> None:
        self._oracle = Oracle(max(HEAP_MB_MIN, size * HEAP_BYTES_PER_ACL >> 20))
        self._oracle.answers(["start\t\tfalse"])

    def keep(self, load: Load) -> None:
        """Load the ACLs, keep the questions and warm up."""
        lines = list(load.lines())
        [reply] = self._oracle.answers([*lines, "load\t0\t0"])
        if int(reply) != load.size:
            raise SystemExit(f"{load.name}: {load.size} ACLs here, {reply} there")
        self.ask_about(load, WARM_UP_MS)

    def ask_about(self, load: Load, warm_up_ms: int) -> None:
        """Keep the questions and ask them for a while, once at least."""
        questions = [_question_line(asked) for asked in load.questions]
        self._oracle.answers([*questions, f"time\t0\t{warm_up_ms}"])

    def round(self) -> Timed:
        """Ask everything once."""
        [reply] = self._oracle.answers(["time\t1\t0"])
        answers, nanos = reply.split("\t")
        return int(nanos), answers

    def ask(self, *lines: str) -> list[str]:
        return self._oracle.answers(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._oracle.__exit__(kind, error, traceback)


def _question_line(asked: Ask) -> str:
    fields = [asked.principal, asked.host, str(asked.operation), str(asked.resource_type)]
    return "\t".join(["question", *fields, *([] if asked.name is None else [asked.name])])


class Ours:
    """kustos with the ACLs of a load."""

    def __init__(self, load: Load) -> None:
        self._questions = load.questions
        self._bindings = load.bindings
        self.authorizer = StandardAuthorizer.of(load.bindings)
        self._one_of: dict[str, tuple[UUID, AclBinding]] = {}

    def cold(self) -> Timed:
        """Ask open sessions what they were never asked: no session's memory helps."""
        return self._run(self._plan(self._open()))

    def warm(self) -> Timed:
        """Ask sessions twice, and time the second time."""
        plan = self._plan(self._open())
        plan()
        return self._run(plan)

    def full_call(self) -> Timed:
        """Make the whole call of the SPI, one action each, cold."""
        authorize = self.authorizer.authorize
        authorizer = self.authorizer
        authorizer.reconfigure(
            super_users=authorizer.super_users,
            allow_everyone_if_no_acl_found=authorizer.allow_everyone_if_no_acl_found,
        )
        contexts: dict[tuple[str, str], AuthorizableRequestContext] = {}
        for asked in self._questions:
            key = (asked.principal, asked.host)
            if key not in contexts:
                contexts[key] = AuthorizableRequestContext(KafkaPrincipal.parse(asked.principal), asked.host)
                for operation in _OPERATIONS:
                    authorize(contexts[key], [Action(ResourceType.TOPIC, NEVER_ASKED, operation)])
        calls = [
            (contexts[q.principal, q.host], [Action(q.resource_type, q.name or "", q.operation)])
            for q in self._questions
        ]
        return self._run(lambda: [authorize(context, actions)[0] for context, actions in calls])

    def deciding(self, count: int) -> Callable[[], None]:
        """Return what asks open sessions the next so many questions, and begins again after the last."""
        sessions = self._open()
        plan = cycle([(sessions[q.principal, q.host], q) for q in self._questions])

        def decide() -> None:
            for session, asked in islice(plan, count):
                session.decide(asked.operation, asked.resource_type, asked.name or "")

        return decide

    def by_type(self) -> Timed:
        """Ask by resource type after each subject's ACLs changed: nothing that was known holds."""
        if not self._one_of:
            subjects = {asked.principal for asked in self._questions}
            for number, binding in enumerate(self._bindings):
                if binding.entry.principal in subjects:
                    self._one_of[binding.entry.principal] = (UUID(int=number), binding)
        for acl_id, binding in self._one_of.values():
            self.authorizer.remove_acl(acl_id)
            self.authorizer.add_acl(acl_id, binding)
        sessions = self._open()
        plan = [(sessions[q.principal, q.host], q.operation, q.resource_type) for q in self._questions]
        return self._run(lambda: [s.decide_by_resource_type(operation, kind) for s, operation, kind in plan])

    def _open(self) -> dict[tuple[str, str], AuthorizerSession]:
        sessions: dict[tuple[str, str], AuthorizerSession] = {}
        for asked in self._questions:
            if (asked.principal, asked.host) not in sessions:
                session = self.authorizer.session(KafkaPrincipal.parse(asked.principal), asked.host)
                for operation in _OPERATIONS:
                    session.decide(operation, asked.resource_type, NEVER_ASKED)
                sessions[asked.principal, asked.host] = session
        return sessions

    def _plan(self, sessions: dict[tuple[str, str], AuthorizerSession]) -> Callable[[], list[Decision]]:
        plan = [
            (sessions[q.principal, q.host], q.operation, q.resource_type, q.name or "")
            for q in self._questions
        ]
        return lambda: [s.decide(operation, kind, name) for s, operation, kind, name in plan]

    @staticmethod
    def _run(ask: Callable[[], list[Decision]]) -> Timed:
        decisions: list[Decision] = []

        def run() -> None:
            decisions[:] = ask()

        duration = timed(run)
        return duration, "".join("A" if decision.allowed else "D" for decision in decisions)


_OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
