"""From requests to answers, batch by batch in bounded memory, with a progress display on a terminal."""

import gc
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kustos.authorizer import Decision, Fault, Questioner, StandardAuthorizer
from kustos.cli.acl_source import AclSource
from kustos.cli.answers import (
    TEXT_FORMS,
    AnswerWriter,
    ParquetAnswers,
    TextAnswers,
)
from kustos.cli.broker_settings import report_unknown
from kustos.cli.decision_workers import Tally, decide_in_workers
from kustos.cli.failures import usage_error
from kustos.cli.output import OutputFormat
from kustos.cli.requests import FIELDS as REQUEST_FIELDS
from kustos.cli.requests import (
    AnswerFormat,
    Item,
    Lines,
    RecordFormat,
    answer_format_of,
    csv_batches,
    format_of,
    json_items,
    parquet_batches,
    shown,
)
from kustos.cli.text_files import STANDARD_INPUT
from kustos.runtime import reason_of

ALONE_BYTES: Final = 2 << 20
"""Bytes decided before the workers start; deciding them takes half as long as starting the workers."""

COLLECTED_AFTER: Final = 100_000
"""New objects between runs of the cyclic garbage collector; deciding creates no cycles."""


@dataclass(frozen=True, slots=True)
class RequestSource:
    """Requests to read. `total` has the unit of `done` (bytes or rows), None if it is unknown."""

    batches: Iterator[list[Item]]
    total: int | None
    done: Callable[[], int] | None
    lines: Lines | None = None
    """JSON lines come as raw lines instead of batches, so that workers can parse them."""


def load_authorizer(acls: AclSource) -> StandardAuthorizer:
    """Return an authorizer with the ACLs of a source; raise the errors of reading before deciding anything.

    Reports unknown broker settings on standard error.
    """
    loaded = acls.load()
    rules = loaded.settings.rules()
    authorizer = StandardAuthorizer.of(
        loaded.bindings,
        super_users=rules.super_users,
        allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
    )
    report_unknown(OutputFormat.TABLE, loaded.settings)
    # the loaded ACLs live to the end: the collector need not traverse them again
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    return authorizer


@contextmanager
def open_requests(name: str, chosen: RecordFormat | None) -> Iterator[RequestSource]:
    """Open the requests; raise a usage error for a file that cannot be read or has another format."""
    record_format = format_of(name, chosen)
    if record_format is RecordFormat.PARQUET:
        with _parquet_file(name) as file:
            yield RequestSource(parquet_batches(file), file.metadata.num_rows, None)
        return
    if name == STANDARD_INPUT:
        yield _text_source(sys.stdin.fileno(), record_format)
        return
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise usage_error(f"cannot read the requests `{name}`: {reason_of(error)}") from error
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise usage_error(f"cannot read the requests `{name}`: it is a directory")
        yield _text_source(descriptor, record_format)
    finally:
        os.close(descriptor)


def _text_source(descriptor: int, record_format: RecordFormat) -> RequestSource:
    lines = Lines(descriptor)
    status = os.fstat(descriptor)
    total = status.st_size if stat.S_ISREG(status.st_mode) else None
    if record_format is RecordFormat.JSON_LINES:
        return RequestSource(iter(()), total, lambda: lines.read_bytes, lines)
    return RequestSource(csv_batches(lines), total, lambda: lines.read_bytes)


@contextmanager
def _parquet_file(name: str) -> Iterator[Any]:
    parquet = _parquet()
    if name == STANDARD_INPUT:
        raise usage_error("Parquet cannot be read from standard input, name a file")
    import pyarrow as pa

    try:
        file = parquet.ParquetFile(name)
    except (OSError, pa.ArrowInvalid) as error:
        reason = (
            error.strerror if isinstance(error, OSError) and error.strerror else "it is not a Parquet file"
        )
        raise usage_error(f"cannot read the requests `{name}`: {reason.lower()}") from error
    with file:
        yield file


def _parquet() -> Any:
    from kustos.extras import needs_extra

    with needs_extra("arrow", "Parquet"):
        from pyarrow import parquet
    return parquet


@contextmanager
def open_answers(name: str, chosen: AnswerFormat | None) -> Iterator[AnswerWriter]:
    """Open the target of answers; a successful end writes what is still buffered."""
    answer_format = answer_format_of(name, chosen)
    if answer_format is AnswerFormat.PARQUET:
        _parquet()
        if name == STANDARD_INPUT and sys.stdout.isatty():
            raise usage_error("Parquet is not for a terminal, name a file with `--answers`")
    if name == STANDARD_INPUT:
        sys.stdout.flush()
        writer = _writer(sys.stdout.buffer, answer_format, is_terminal=sys.stdout.isatty())
        yield writer
        writer.close()
        return
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise usage_error(f"cannot write the answers `{name}`: {reason_of(error)}") from error
    with os.fdopen(descriptor, "wb") as stream:
        writer = _writer(stream, answer_format, is_terminal=False)
        yield writer
        writer.close()


def _writer(stream: Any, answer_format: AnswerFormat, *, is_terminal: bool) -> AnswerWriter:
    form = TEXT_FORMS.get(answer_format)
    if form is None:
        return ParquetAnswers(stream)
    return TextAnswers(stream, form.for_terminal() if is_terminal else form)


class RequestDecider:
    """Decides requests in order and reports the invalid ones."""

    def __init__(self, authorizer: StandardAuthorizer, workers: int = 1) -> None:
        self._questioner: Final = Questioner(authorizer)
        self._workers: Final = workers
        self._count = 0
        self._tally = Tally()

    def run(self, source: RequestSource, writer: AnswerWriter) -> Tally:
        """Answer every request; return what they came to."""
        with _progress(source) as report:
            batches = source.batches if source.lines is None else self._of_lines(source.lines, writer, report)
            for items in batches:
                writer.write(self.decide(items))
                report(self._count)
        return self._tally

    def _of_lines(
        self, lines: Lines, writer: AnswerWriter, report: Callable[[int], None]
    ) -> Iterator[list[Item]]:
        """Yield the first requests; if there are many, leave the others to workers."""
        batches = lines.batches()
        for batch in batches:
            yield json_items(batch)
            if lines.read_bytes >= ALONE_BYTES and self._workers > 1 and isinstance(writer, TextAnswers):
                self._leave_to_workers(batches, lines, writer, report)

    def _leave_to_workers(
        self, batches: Iterator[list[str]], lines: Lines, writer: TextAnswers, report: Callable[[int], None]
    ) -> None:
        def decide(batch: list[str], first: int) -> tuple[str, Tally]:
            # this runs in a worker process, with its own counts
            self._count, self._tally = first - 1, Tally()
            return writer.render(self.decide(json_items(batch))), self._tally

        # the previous batch was yielded, and is answered before the next one is requested
        answered = decide_in_workers(batches, self._count + 1, decide, lines.is_ready, self._workers)
        for text, tally, count in answered:
            writer.write_text(text)
            self._tally = self._tally.then(tally)
            self._count += count
            report(self._count)

    def decide(self, items: list[Item]) -> list[Decision | str]:
        """Return the decision on each item; a string says why there is none."""
        decide_one = self._questioner.ask
        answers = [item if isinstance(item, str) else decide_one(*item) for item in items]
        decisions = [answer for answer in answers if isinstance(answer, Decision)]
        first, self._count = self._count + 1, self._count + len(items)
        if len(decisions) == len(items):
            all_allowed = all(decision.allowed for decision in decisions)
            self._tally = self._tally.then(Tally(all_allowed, bool(decisions)))
            return list(decisions)
        numbered = enumerate(zip(items, answers, strict=True), first)
        reported = [
            answer if isinstance(answer, Decision) else f"request {number}: {_reason(item, answer)}"
            for number, (item, answer) in numbered
        ]
        first_reason = next(each for each in reported if isinstance(each, str))
        self._tally = self._tally.then(Tally(False, bool(decisions), first_reason))
        return reported


def _reason(item: Item, answer: Fault | str) -> str:
    if isinstance(answer, str):
        return answer
    value = item[REQUEST_FIELDS.index(answer.field)]
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{answer.field} `{shown(text)}` {answer.rule}"


@contextmanager
def _progress(source: RequestSource) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error if it is a terminal, unless answers go to the terminal too."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("deciding", total=source.total)

        def report(count: int) -> None:
            done = count if source.done is None else source.done()
            display.update(task, completed=done, description=f"{count:,} decided")

        yield report
