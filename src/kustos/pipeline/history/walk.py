"""A worker's pass through time: changes of ACLs and questions in one order, decided by the ACLs in force.

Rows are sorted: by bucket, then by `order`, changes before questions of the same order. The authorizer is
that of the gateway; ACLs are added and removed one by one, so the cost of an interval is that of its changes.
A question that spans some time (`until`) and whose decision does not agree with the record stays open, and is
decided again after each change, until a decision agrees or its time is over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from kustos.acl import (
    AclBinding,
    AclValueError,
)
from kustos.acl.forms import binding_of_texts, texts_of
from kustos.authorizer import ALLOWED, AclFaultError, Fault, Questioner, StandardAuthorizer
from kustos.authorizer.spi import Decision
from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.schemas import ACL_SCHEMA, QUESTION_COLUMNS
from kustos.wire import uuid_of_text

REMOVED: Final = 0
ADDED: Final = 1
QUERY: Final = 2
"""The kind of a row; rows of one offset are processed in this order."""

FIRST_ORDER: Final = -(1 << 63)
"""The order of ACLs that existed when the history began."""

OPEN_QUESTIONS_MAX: Final = 50_000
"""Open questions of one bucket, some 100 MB; questions beyond the limit are UNCERTAIN."""

WALK_COLUMNS: Final = ("lane", "bucket", "order", "step", "until", "preset", "acl_id", "acl")
"""The columns that the walk consumes; all others but the question are passed through."""

ANSWER_FIELDS: Final = (
    pa.field("decision", pa.string()),
    pa.field("rule", pa.string()),
    pa.field("verdict", pa.string()),
    pa.field("is_same_rule", pa.bool_()),
)

Question = tuple[str | None, ...]
_ACL_FIELDS: Final = tuple(ACL_SCHEMA.fieldNames())


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that decide besides ACLs; `knows_super_users`: nobody else was a super user then."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False
    knows_super_users: bool = True


@dataclass(frozen=True, slots=True)
class _Open:
    """A question whose decision does not agree with the record yet, and the end of its time."""

    until: int
    question: Question
    recorded: str
    rule: dict[str, Any] | None
    row: Any
    first: Decision | Fault


class _State:
    """The ACLs of one bucket at the current moment."""

    def __init__(self, settings: Settings) -> None:
        self._authorizer: Final = StandardAuthorizer(
            super_users=settings.super_users,
            allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
        )
        self._authorizer.complete_initial_load()
        self._questioner: Final = Questioner(self._authorizer)
        self._first: list[tuple[UUID, AclBinding]] = []

    def change(self, order: int, step: int, acl_id: str, acl: dict[str, str]) -> None:
        """Apply one change; raise `MetadataHistoryError` for one that no single log can contain."""
        try:
            if step == REMOVED:
                self._load_first()
                self._authorizer.remove_acl(uuid_of_text(acl_id))
            elif order == FIRST_ORDER:
                self._first.append((uuid_of_text(acl_id), binding_of_texts(acl)))
            else:
                self._load_first()
                self._authorizer.add_acl(uuid_of_text(acl_id), binding_of_texts(acl))
        except (AclFaultError, AclValueError, ValueError) as error:
            raise MetadataHistoryError(
                f"the history of the ACL `{acl_id}` is not that of one log: {error}"
            ) from error

    def _load_first(self) -> None:
        if not self._first:
            return
        try:
            self._authorizer.load_snapshot(self._first)
        except AclFaultError as error:
            raise MetadataHistoryError(f"the history is not that of one log: {error}") from error
        self._first = []

    def ask(self, question: Question) -> Decision | Fault:
        """Return the decision of the current ACLs."""
        self._load_first()
        return self._questioner.ask(*question)

    def write(self, decision: Decision | Fault) -> tuple[str, str]:
        """Return the texts of a decision and its rule."""
        return self._questioner.write(decision)


_Answer = tuple[str | None, str | None, str, bool | None]
"""Decision, rule, verdict, and whether the rule is the recorded one."""


class _Answers:
    """The answers found while reading a batch: to its own rows by number, to earlier rows as copies."""

    def __init__(self, batch: Any) -> None:
        self._batch: Final = batch
        self._own: Final[list[tuple[int, _Answer]]] = []
        self._earlier: Final[list[tuple[Any, _Answer]]] = []

    def add(self, row: Any, answer: _Answer) -> None:
        """Add the answer to a row, which is a number or a batch of one row."""
        (self._own if isinstance(row, int) else self._earlier).append((row, answer))

    def copy(self, number: int) -> Any:
        """Return a row by itself: a slice would keep the whole batch."""
        return self._batch.take(pa.array([number]))

    def tables(self) -> Iterator[Any]:
        """Yield the rows with their answers."""
        if self._own:
            numbers, answers = zip(*self._own, strict=True)
            yield _answered(pa.Table.from_batches([self._batch]).take(pa.array(numbers)), answers)
        if self._earlier:
            rows, answers = zip(*self._earlier, strict=True)
            yield _answered(pa.Table.from_batches(rows), answers)


def _answered(table: Any, answers: tuple[_Answer, ...]) -> Any:
    for answer, values in zip(ANSWER_FIELDS, zip(*answers, strict=True), strict=True):
        table = table.append_column(answer, pa.array(values, answer.type))
    return table


class Walk:
    """One walk through all rows of a task."""

    def __init__(self, settings: Settings) -> None:
        self._settings: Final = settings
        self._place: tuple[int, int] | None = None
        self._state = _State(settings)
        self._open: list[_Open] = []
        self._changed_at: int | None = None

    def judged(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the questions among the rows, answered; raise `MetadataHistoryError`."""
        for batch in batches:
            answers = _Answers(batch.drop_columns(list(WALK_COLUMNS)))
            self._take(batch, answers)
            yield from _batches_of(answers)
        answers = _Answers(None)
        self._close(answers)
        yield from _batches_of(answers)

    def _take(self, batch: Any, answers: _Answers) -> None:
        lanes, buckets, orders, steps, untils, presets, ids, acls = (
            batch.column(name).to_pylist() for name in WALK_COLUMNS
        )
        questions = zip(*(batch.column(name).to_pylist() for name in QUESTION_COLUMNS), strict=True)
        recorded = batch.column("recorded_decision").to_pylist()
        rules = batch.column("recorded_rule").to_pylist()
        for number, question in enumerate(questions):
            order, step = orders[number], steps[number]
            if (lanes[number], buckets[number]) != self._place:
                self._close(answers)
                self._place = lanes[number], buckets[number]
                self._state = _State(self._settings)
            if self._changed_at is not None and order != self._changed_at:
                self._ask_again(answers)
            if step != QUERY:
                if self._open and order != self._changed_at:
                    self._expire(order, answers)
                self._state.change(order, step, ids[number], acls[number])
                self._changed_at = order
                continue
            if presets[number] is not None:
                answers.add(number, (None, None, presets[number], None))
                continue
            decision = self._state.ask(question)
            pending = _Open(untils[number], question, recorded[number], rules[number], number, decision)
            self._resolve(pending, is_over=untils[number] <= order, answers=answers)

    def _resolve(self, pending: _Open, *, is_over: bool, answers: _Answers) -> None:
        if self._agrees(pending, pending.first):
            self._answer(pending, pending.first, "AGREES", answers)
        elif is_over:
            self._answer(pending, pending.first, "DIFFERS", answers)
        elif len(self._open) >= OPEN_QUESTIONS_MAX:
            self._answer(pending, pending.first, "UNCERTAIN", answers)
        else:
            self._open.append(replace(pending, row=answers.copy(pending.row)))

    def _ask_again(self, answers: _Answers) -> None:
        self._changed_at = None
        still = []
        for each in self._open:
            decision = self._state.ask(each.question)
            if self._agrees(each, decision):
                self._answer(each, decision, "AGREES", answers)
            else:
                still.append(each)
        self._open = still

    def _expire(self, order: int, answers: _Answers) -> None:
        """Close the questions that ended before this order; a change at the very end still counts."""
        still = []
        for each in self._open:
            if each.until < order:
                self._answer(each, each.first, "DIFFERS", answers)
            else:
                still.append(each)
        self._open = still

    def _close(self, answers: _Answers) -> None:
        if self._changed_at is not None:
            self._ask_again(answers)
        for each in self._open:
            self._answer(each, each.first, "DIFFERS", answers)
        self._open = []

    def _agrees(self, pending: _Open, decision: Decision | Fault) -> bool:
        allows = isinstance(decision, Decision) and decision.allowed
        return allows is (pending.recorded == ALLOWED)

    def _answer(self, pending: _Open, decision: Decision | Fault, verdict: str, answers: _Answers) -> None:
        if verdict == "DIFFERS" and self._may_be_of_super_user(pending):
            verdict = "UNCERTAIN"
        answer = (*self._state.write(decision), verdict, is_same_rule(pending.rule, decision))
        answers.add(pending.row, answer)

    def _may_be_of_super_user(self, pending: _Open) -> bool:
        """Return whether neither the record nor the settings say if a super user was allowed."""
        names_rule = pending.rule is not None and pending.rule["kind"] is not None
        return pending.recorded == ALLOWED and not names_rule and not self._settings.knows_super_users


def _batches_of(answers: _Answers) -> Iterator[Any]:
    for table in answers.tables():
        yield from table.to_batches()


def is_same_rule(recorded: dict[str, Any] | None, decision: Decision | Fault) -> bool | None:
    """Return whether the recorded rule is the deciding one; None if too little of either is known."""
    if isinstance(decision, Fault) or not recorded or recorded["kind"] is None:
        return None
    rule = decision.rule
    if recorded["kind"] != rule.kind.value:
        return False
    if rule.binding is None:
        return True
    texts = texts_of(rule.binding)
    if any(recorded[name] not in (None, text) for name, text in texts.items()):
        return False
    # Confluent's events lack the operation of the rule
    return None if any(recorded[name] is None for name in texts) else True
