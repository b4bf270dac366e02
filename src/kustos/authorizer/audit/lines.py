"""JSON lines of audit events, by writers that are compiled from the tables of their fields.

Theory of operation. Formatting runs on the event loop, so its time is latency for clients. Therefore a table
becomes Python source, in which consecutive fields of one scope are one f-string. The values that the events
of a request share are formatted once for the request. The text of a decision is formatted once and reused as
long as the authorizer returns the same decision.

The source of a field is an expression over these names. For a decision's event: `event_id`, `time_ms`,
`node_id`, `cluster_id`, `context` (of the request), `api_name`, `item` (an `AuditedDecision`), its `action`
and `decision`, its `shadow` and `candidate`, the `binding` of the rule or None, `acl_offset`, `change_offset`
and `latency_us`. For a security event: `event`, `event_id`, `node_id` and `cluster_id`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, repeat
from json.encoder import encode_basestring
from typing import Any, Final, Protocol

from kustos.authorizer.audit.events import Access, audited_name, visible
from kustos.authorizer.audit.fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
from kustos.authorizer.shadow import ShadowDecision
from kustos.authorizer.spi.values import Action, AuthorizableRequestContext, Decision

DECISIONS_MAX: Final = 4096
"""Decisions whose text is cached, about 2 MB: one for each ACL in use, and the default decisions."""


TEXTS_MAX: Final = 4096
KEPT_CHARACTERS_MAX: Final = 255
"""The number and length of texts whose JSON is cached (topics have at most 249 characters): about 5 MB."""


class AuditedDecision(Protocol):
    """A decision to be audited; `kustos.protocol.Decided` implements it."""

    @property
    def action(self) -> Action:
        """The action that was decided."""

    @property
    def decision(self) -> Decision:
        """The authorizer's answer."""

    @property
    def listing(self) -> bool:
        """Whether the decision only filters a list."""

    @property
    def name(self) -> str | None:
        """The resource name; None for a question about any resource of the type."""

    @property
    def distinct_names(self) -> int | None:
        """How many names the event covers; None for an event about one name."""

    @property
    def decision_count(self) -> int | None:
        """How many decisions the event stands for; None for an event of one decision."""

    @property
    def shadow(self) -> ShadowDecision | None:
        """The decision of the ACLs if it differs and is not enforced."""

    @property
    def candidate(self) -> ShadowDecision | None:
        """The decision of candidate ACLs if it differs."""


def quoted(text: str) -> str:
    """Return a text as JSON in which every character is visible."""
    return _kept(text) if len(text) <= KEPT_CHARACTERS_MAX else _quoted(text)


def _quoted(text: str) -> str:
    return visible(encode_basestring(text))


_kept: Final = lru_cache(maxsize=TEXTS_MAX)(_quoted)
"""The names of principals, clients and topics are the same in many requests."""


def json_text(value: object) -> str:
    """Return a value as one line of JSON in which every character is visible."""
    return visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


class Fragment:
    """Consecutive fields as source: statements that compute their texts, and an f-string."""

    def __init__(self, fields: Iterable[AuditField], prefix: str) -> None:
        self.statements: Final[list[str]] = []
        pieces: list[str] = []
        outer = ""
        for number, field in enumerate(fields):
            variable = f"{prefix}{number}"
            self.statements.append(f"{variable} = {field.source}")
            self.statements.append(f"{variable} = {_encoded(field, variable)}")
            parent, _, leaf = field.name.rpartition(".")
            opened = f'"{parent}":{{{{' if parent and parent != outer else ""
            if outer and parent != outer:
                pieces[-1] += "}}"
            outer = parent
            pieces.append(f'{opened}"{leaf}":{{{variable}}}')
        if outer:
            pieces[-1] += "}}"
        self.text: Final = ",".join(pieces)
        """The inside of an f-string with single quotes."""


def _encoded(field: AuditField, variable: str) -> str:
    """Return an expression for the JSON text of a variable."""
    match field.kind:
        case "boolean":
            text = f"'true' if {variable} else 'false'"
        case "string" if field.is_plain:
            text = f"""f'"{{{variable}}}"'"""
        case "string":
            text = f"text({variable})"
        case _:
            text = variable
    return f"'null' if {variable} is None else {text}" if field.nullable else text


def compiled(name: str, source: str, names: dict[str, object]) -> Callable[..., Any]:
    """Return the function of this name that the source defines."""
    namespace = dict(names)
    # the source comes only from the tables in this package
    exec(compile(source, f"<audit {name}>", "exec"), namespace)  # noqa: S102
    function: Callable[..., Any] = namespace[name]  # type: ignore[assignment]
    return function


def _indented(statements: Iterable[str], depth: int) -> str:
    return "".join(f"{'    ' * depth}{statement}\n" for statement in statements)


def line_writer(arguments: str, fields: Sequence[AuditField], names: dict[str, object]) -> Callable[..., str]:
    """Return a function of these arguments that formats one event; all fields are of the scope `event`."""
    fragment = Fragment(fields, "v")
    body = _indented([*fragment.statements, f"return f'{{{{{fragment.text}}}}}'"], 1)
    return compiled("line", f"def line({arguments}):\n{body}", names)


def _decision_writer() -> Callable[[Decision], str]:
    fragment = Fragment([field for field in AUDIT_FIELDS if field.scope == "decision"], "d")
    statements = ["binding = decision.rule.binding", *fragment.statements, f"return f'{fragment.text}'"]
    return compiled("line", f"def line(decision):\n{_indented(statements, 1)}", {"text": quoted})


def _shadow_writer() -> Callable[[ShadowDecision | None, ShadowDecision | None], str]:
    fragment = Fragment([field for field in AUDIT_FIELDS if field.scope == "shadow"], "s")
    body = _indented([*fragment.statements, f"return f',{fragment.text}'"], 1)
    return compiled("line", f"def line(shadow, candidate):\n{body}", {"text": quoted})


def _lines_writer() -> Callable[..., Iterator[str]]:
    before: list[str] = []
    each: list[str] = [
        "action, shadow, candidate = item.action, item.shadow, item.candidate",
        "of_shadow = shadow_text(shadow, candidate) if shadow or candidate else ''",
    ]
    pieces: list[str] = []
    for number, (scope, fields) in enumerate(groupby(AUDIT_FIELDS, lambda field: field.scope)):
        if scope == "decision":
            pieces.append("{decision_text(item.decision)}")
            continue
        if scope == "shadow":
            continue
        fragment = Fragment(fields, f"v{number}_")
        if scope == "request":
            before += [*fragment.statements, f"shared_{number} = f'{fragment.text}'"]
            pieces.append(f"{{shared_{number}}}")
        else:
            each += fragment.statements
            pieces.append(fragment.text)
    each.append(f"yield f'{{{{{','.join(pieces)}{{of_shadow}}}}}}'")
    arguments = (
        "context, api_name, decided, event_ids, time_ms, acl_offset, change_offset, latency_us, node_id, "
        "cluster_id, decision_text"
    )
    source = (
        f"def lines({arguments}):\n{_indented(before, 1)}"
        f"    for item, event_id in zip(decided, event_ids):\n{_indented(each, 2)}"
    )
    names: dict[str, object] = {
        "text": quoted,
        "audited_name": audited_name,
        "Access": Access,
        "AUDIT_SCHEMA_VERSION": AUDIT_SCHEMA_VERSION,
        "shadow_text": _shadow_writer(),
    }
    return compiled("lines", source, names)


_DECISION: Final = _decision_writer()
_LINES: Final = _lines_writer()


EVENT_ID, TIME_MS, CORRELATION_ID, ACL_OFFSET, LATENCY_US = MARKS = "\0", "\1", "\2", "\3", "\4"
"""Marks of the fields that differ in the lines of requests that repeat one, in the order of the fields. No
text contains them, because texts have control characters escaped."""

ANY_MARK: Final = re.compile(f"[{''.join(MARKS)}]")


class JsonLines:
    """Formats the events of decisions, and caches the texts of decisions. Not thread-safe."""

    __slots__ = ("_decisions", "_node")

    def __init__(self, node_id: int, cluster_id: str | None = None) -> None:
        self._node: Final = node_id, cluster_id
        # by identity, because a comparison by value costs more than formatting; the decision is kept so that
        # no other object gets its identity
        self._decisions: dict[int, tuple[Decision, str]] = {}

    def lines(
        self,
        context: AuthorizableRequestContext,
        api_name: str,
        decided: Sequence[AuditedDecision],
        event_ids: Iterator[str],
        time_ms: int,
        acl_offset: int,
        change_offset: int | None = None,
        latency_us: int | None = None,
    ) -> Iterator[str]:
        """Yield the line of each decision, without a line feed."""
        of_request = time_ms, acl_offset, change_offset, latency_us
        return _LINES(context, api_name, decided, event_ids, *of_request, *self._node, self._text_of)

    def template(
        self,
        context: AuthorizableRequestContext,
        api_name: str,
        decided: Sequence[AuditedDecision],
        event_id: str,
    ) -> bytes:
        """Return a `%` format of the lines of requests that repeat this one, each with a line feed.

        `event_id` is the format of an id. The values of each line are the values of `event_id`, the time in
        milliseconds, the correlation id, the offset of the ACLs, and the latency in microseconds.
        """
        marked: Any = replace(context, correlation_id=CORRELATION_ID)  # type: ignore[arg-type]
        marks: Any = repeat(EVENT_ID), TIME_MS, ACL_OFFSET, None, LATENCY_US
        text = "".join(f"{line}\n" for line in self.lines(marked, api_name, decided, *marks))
        if ANY_MARK.findall(text) != [*MARKS] * len(decided):
            raise ValueError("an audit line has other changing fields than expected")
        text = text.replace("%", "%%").replace(EVENT_ID, event_id)
        for mark in MARKS[1:]:
            text = text.replace(mark, "%d")
        return text.encode()

    def _text_of(self, decision: Decision) -> str:
        known = self._decisions.get(id(decision))
        if known is not None:
            return known[1]
        text = _DECISION(decision)
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[id(decision)] = (decision, text)
        return text
