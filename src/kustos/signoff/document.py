"""The review as a JSON document that people sign off: its rows, their decisions, and digests of both.

    {"format": "kustos-access-review", "version": 2,
     "review": {"cluster": ..., "as_of": ..., "dormant_days": ..., "acls": {"digest", ...},
                "rows": [{"row_id", ...}]},
     "review_digest": "sha256:...",
     "decisions": {"<row_id>": {"verdict": "keep", "by": ..., "at": ..., "reason": ...}},
     "sign_off": {"by": ..., "at": ..., "digest": "sha256:..."}}

`review_digest` covers `review` and never changes while people decide: it proves that all saw the same rows.
The digest of `sign_off` covers everything but itself. Both are SHA-256 over canonical JSON: sorted keys, no
blanks, ASCII, no fractions. A digest detects accidental changes; only a signature (`signature`) protects
against an attacker, who can compute a new digest. So the checks do not rely on digests.

The checks are plain Python. Models of pydantic, which is no dependency of the core, would state only the
shapes; ids, order, digests and the rows of decisions need code anyway, and so do messages that name a row.
The models would not be shorter, and importing them takes 0.17 s, as long as this package.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique
from typing import Any, Final, Protocol

from kustos.acl import AclBinding, AclOperation, PatternType, ResourceType
from kustos.analysis import Rules
from kustos.signoff.csv_form import ENTITLEMENT_COLUMNS, RECORD_COLUMNS, instant_text
from kustos.signoff.errors import SignoffError

FORMAT: Final = "kustos-access-review"
VERSION: Final = 2

COLUMNS: Final = tuple(name for name in ENTITLEMENT_COLUMNS if name not in RECORD_COLUMNS)
"""The columns of a document's rows."""

DOCUMENT_CHARACTERS_MAX: Final = 1 << 30
"""Longest document read: about two million rows, far more than people can sign off."""

TEXT_CHARACTERS_MAX: Final = 4_096
"""Longest reason or name of a reviewer."""

Document = dict[str, Any]

_IDENTITY: Final = ("principal", "operation", "resource_type", "resource_name", "pattern_type")

_ACL: Final = frozenset(
    {"resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"}
)
"""The texts of an ACL."""

_PARTS: Final = frozenset({"cluster", "as_of", "made_at", "dormant_days", "acls", "rows", "since", "record"})
"""The keys of `review`."""

_REVIEWED_ACLS: Final = frozenset({"name", "digest", "super_users", "allow_everyone_if_no_acl_found"})
"""The keys of `acls` in `review`."""

_NAMES: Final[Mapping[str, Mapping[str, Any]]] = {
    "operation": AclOperation.__members__,
    "resource_type": ResourceType.__members__,
    "pattern_type": PatternType.__members__,
}
"""Column → the names that it may have."""


@unique
class ReviewDecision(StrEnum):
    """A reviewer's decision on a row."""

    KEEP = "keep"
    REVOKE = "revoke"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class ReviewState:
    """The state of an unaltered document: rows and decisions by kind; `is_signed_off` if it was closed."""

    rows: int
    keep: int
    revoke: int
    ask: int
    undecided: int
    is_signed_off: bool

    @property
    def is_complete(self) -> bool:
        """Whether each row is kept or revoked."""
        return self.ask == self.undecided == 0


class ReviewedAcls(Protocol):
    """A set of ACLs with its settings, such as `AclsInForce` of the pipeline."""

    @property
    def name(self) -> str:
        """The name for people."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, in hexadecimal."""

    @property
    def bindings(self) -> tuple[AclBinding, ...]:
        """The ACLs."""

    @property
    def rules(self) -> Rules:
        """The settings that decide together with the ACLs."""


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value; raise `SignoffError` for a fraction, which has several."""
    _refuse_fractions(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _refuse_fractions(value: Any) -> None:
    if isinstance(value, float):
        raise SignoffError(f"the review contains the fraction `{value}`, but a review has only whole numbers")
    if isinstance(value, dict):
        for one in value.values():
            _refuse_fractions(one)
    elif isinstance(value, list):
        for one in value:
            _refuse_fractions(one)


def digest_of(value: Any) -> str:
    """Return `sha256:` and the digest of a value's canonical JSON."""
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def review_document(
    rows: Iterable[Mapping[str, Any]],
    acls: ReviewedAcls,
    *,
    as_of: datetime,
    dormant_days: int,
    created_at: datetime,
    cluster: str = "",
    since: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
) -> Document:
    """Return the document of `entitlements` rows (mappings, as `row.asDict(recursive=True)`), undecided.

    Rows are sorted by their ids. `since` describes the former review that they were compared with, `record`
    what the record covers (`RecordCoverage.as_dict`). Raises `SignoffError` for a repeated row.
    """
    rows_by_id: dict[str, Document] = {}
    for row in rows:
        plain = {name: plain_value(row.get(name)) for name in COLUMNS}
        row_id = entitlement_id_of(plain)
        if row_id in rows_by_id:
            raise SignoffError(f"row `{row_id}` is in the review twice, give each row once")
        rows_by_id[row_id] = {"row_id": row_id, **plain}
    review = {
        "cluster": cluster,
        "as_of": instant_text(as_of),
        "made_at": instant_text(created_at),
        "dormant_days": dormant_days,
        "acls": {
            "name": acls.name,
            "digest": f"sha256:{acls.digest}",
            "super_users": sorted(acls.rules.super_users),
            "allow_everyone_if_no_acl_found": acls.rules.allow_everyone_if_no_acl_found,
        },
        "rows": [rows_by_id[row_id] for row_id in sorted(rows_by_id)],
        "since": None if since is None else plain_value(since),
        "record": None if record is None else plain_value(record),
    }
    document = {
        "format": FORMAT,
        "version": VERSION,
        "review": review,
        "review_digest": digest_of(review),
    }
    return {**document, "decisions": {}, "sign_off": None}


def entitlement_id_of(row: Mapping[str, Any]) -> str:
    """Return an entitlement's id, equal in every review: a digest of what grants it, and the operation."""
    identity = [row[name] for name in ("basis", *_IDENTITY, "granted_by")]
    return hashlib.sha256(canonical_json(identity)).hexdigest()[:32]


def plain_value(value: Any) -> Any:
    """Return a value of a row in JSON types, times as texts."""
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Mapping):
        return {name: plain_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return value


def with_decision(
    document: Document,
    row_id: str,
    decision: ReviewDecision,
    *,
    by: str,
    at: datetime,
    reason: str = "",
) -> Document:
    """Return the document with a reviewer's decision on one row; as `with_decisions`."""
    return with_decisions(document, [row_id], decision, by=by, at=at, reason=reason)


def with_decisions(
    document: Document,
    row_ids: Iterable[str],
    decision: ReviewDecision,
    *,
    by: str,
    at: datetime,
    reason: str = "",
    seen: Document | None = None,
    overrules: bool = False,
) -> Document:
    """Return the document with a reviewer's decision on some rows, which replaces the reviewer's earlier one.

    `seen` is the document as the reviewer saw it, if that was an earlier state. A keep or revoke of another
    reviewer is replaced only if the decision `overrules` it, and one that `seen` lacks never. Raises
    `SignoffError` for such a conflict, for an unknown row, a document that is signed off or of other rows
    than `seen`, and for a decision without a name and, for `revoke` and `ask`, a reason.
    """
    seen = seen or document
    if document["review_digest"] != seen["review_digest"]:
        raise SignoffError("the file contains another review now, look at its rows and decide again")
    if document["sign_off"] is not None:
        raise SignoffError("the review is signed off, make a new review to change decisions")
    known = {row["row_id"] for row in document["review"]["rows"]}
    entry = {"verdict": decision.value, "by": by, "at": _zoned(at), "reason": reason}
    decided = dict(document["decisions"])
    for row_id in row_ids:
        if row_id not in known:
            raise SignoffError(f"the review has no row `{row_id}`")
        _check_decision(row_id, entry)
        former = decided.get(row_id)
        if former is not None and former["by"] != by:
            _check_replaced(
                row_id, former, is_seen=former == seen["decisions"].get(row_id), overrules=overrules
            )
        decided[row_id] = dict(entry)
    return {**document, "decisions": decided}


def _check_replaced(row_id: str, former: Mapping[str, str], *, is_seen: bool, overrules: bool) -> None:
    """Raise `SignoffError` if the decision of another reviewer must stay."""
    said = f"`{former['by']}` has decided `{former['verdict']}` on row `{row_id}`"
    if not is_seen:
        raise SignoffError(f"{said} meanwhile, look at it and decide again")
    if former["verdict"] != ReviewDecision.ASK and not overrules:
        raise SignoffError(f"{said}, give `--overrule` to replace it or `--undecided` to leave it")


def sign_off(document: Document, *, by: str, at: datetime) -> Document:
    """Return the document signed off; raise `SignoffError` unless each row is kept or revoked."""
    state = verify_review(document)
    if state.is_signed_off:
        raise SignoffError("the review is signed off already")
    if not state.is_complete:
        raise SignoffError(
            f"{state.undecided} rows are undecided and {state.ask} have the verdict `ask`, "
            "keep or revoke each of them"
        )
    _check_text("by", by)
    if not by.strip():
        raise SignoffError("the name of the person who signs off is missing")
    closed = {**document, "sign_off": {"by": by, "at": _zoned(at)}}
    return {**closed, "sign_off": {**closed["sign_off"], "digest": digest_of(closed)}}


def _zoned(at: datetime) -> str:
    if at.tzinfo is None:
        raise SignoffError(f"`{at.isoformat()}` has no time zone, give one such as `+00:00`")
    return instant_text(at)


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str) or len(text) > TEXT_CHARACTERS_MAX:
        raise SignoffError(f"`{what}` of a decision is not text of at most {TEXT_CHARACTERS_MAX} characters")


def _check_decision(row_id: str, decision: Any) -> None:
    if not isinstance(decision, dict) or set(decision) != {"verdict", "by", "at", "reason"}:
        raise SignoffError(f"the decision on row `{row_id}` does not have exactly verdict, by, at and reason")
    for name in ("by", "at", "reason"):
        _check_text(name, decision[name])
    if decision["verdict"] not in list(ReviewDecision):
        raise SignoffError(
            f"`{decision['verdict']}` on row `{row_id}` is not a verdict, use keep, revoke or ask"
        )
    if not decision["by"].strip():
        raise SignoffError(f"the decision on row `{row_id}` does not say who decided")
    if decision["verdict"] != ReviewDecision.KEEP and not decision["reason"].strip():
        raise SignoffError(f"the decision on row `{row_id}` does not say why")
    _check_instant(decision["at"])


def _check_instant(text: Any) -> None:
    try:
        at = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        at = None
    if at is None or at.tzinfo is None:
        raise SignoffError(f"`{text}` is not a time with a zone, write it as `2026-01-31T12:00:00Z`")


def verify_review(document: Document) -> ReviewState:
    """Return the state of a valid document; raise `SignoffError` for an invalid one.

    Checks format and version, each row and its id, the digest of the review, each decision and its row; for a
    sign-off, its digest and that each row is decided.
    """
    _check_shape(document)
    review, decisions = document["review"], document["decisions"]
    row_ids = [_checked_row(row) for row in review["rows"]]
    if row_ids != sorted(set(row_ids)):
        raise SignoffError("rows of the review are repeated or not in order, so they were altered")
    if document["review_digest"] != digest_of(review):
        raise SignoffError("the review does not match its digest, so it was altered")
    _check_instant(review["as_of"])
    known = set(row_ids)
    for row_id, decision in decisions.items():
        if row_id not in known:
            raise SignoffError(f"a decision is about row `{row_id}`, which the review does not have")
        _check_decision(row_id, decision)
    verdicts = [decision["verdict"] for decision in decisions.values()]
    state = ReviewState(
        rows=len(row_ids),
        keep=verdicts.count("keep"),
        revoke=verdicts.count("revoke"),
        ask=verdicts.count("ask"),
        undecided=len(row_ids) - len(verdicts),
        is_signed_off=document["sign_off"] is not None,
    )
    if state.is_signed_off:
        _check_sign_off(document, state)
    return state


def _check_shape(document: Any) -> None:
    names = {"format", "version", "review", "review_digest", "decisions", "sign_off"}
    if not isinstance(document, dict) or set(document) != names:
        raise SignoffError(f"this is not a review, which has the keys {', '.join(sorted(names))}")
    version = document["version"]
    if document["format"] != FORMAT or type(version) is not int or version != VERSION:
        raise SignoffError(f"this is not a review of format `{FORMAT}`, version {VERSION}")
    review = document["review"]
    if not isinstance(review, dict) or set(review) != _PARTS or not isinstance(review["rows"], list):
        raise SignoffError(f"`review` does not have exactly {', '.join(sorted(_PARTS))}")
    acls = review["acls"]
    if not isinstance(acls, dict) or set(acls) != _REVIEWED_ACLS:
        raise SignoffError(f"`acls` does not have exactly {', '.join(sorted(_REVIEWED_ACLS))}")
    if not isinstance(document["decisions"], dict):
        raise SignoffError("`decisions` is not an object of row ids")


def _checked_row(row: Any) -> str:
    if not isinstance(row, dict) or set(row) != {"row_id", *COLUMNS}:
        raise SignoffError(f"a row of the review does not have exactly the columns of version {VERSION}")
    row_id = row["row_id"]
    if row_id != entitlement_id_of(row):
        raise SignoffError(f"row `{row_id}` does not match its id, so it was altered")
    for column, names in _NAMES.items():
        if not isinstance(row[column], str) or row[column] not in names:
            raise SignoffError(f"row `{row_id}` has an unknown `{column}`, `{row[column]}`")
    _check_acls(row_id, [row["granted_by"], row["denied_by"]])
    return str(row_id)


def _check_acls(row_id: str, lists: list[Any]) -> None:
    """Raise `SignoffError` unless these are lists of ACLs as texts, which a comparison writes again."""
    for some in lists:
        if not isinstance(some, list) or not all(
            isinstance(one, dict) and set(one) == _ACL and all(isinstance(text, str) for text in one.values())
            for one in some
        ):
            raise SignoffError(f"row `{row_id}` has an invalid ACL")


def _check_sign_off(document: Document, state: ReviewState) -> None:
    closed = document["sign_off"]
    if not isinstance(closed, dict) or set(closed) != {"by", "at", "digest"}:
        raise SignoffError("`sign_off` does not have exactly by, at and digest")
    _check_text("by", closed["by"])
    _check_text("at", closed["at"])
    _check_instant(closed["at"])
    unsigned = {name: value for name, value in closed.items() if name != "digest"}
    if closed["digest"] != digest_of({**document, "sign_off": unsigned}):
        raise SignoffError("the review was altered after it was signed off")
    if not state.is_complete:
        raise SignoffError("the review was signed off although rows are undecided")


def read_review(text: str) -> Document:
    """Return the document of a JSON text that `verify_review` accepts; raise `SignoffError`."""
    if len(text) > DOCUMENT_CHARACTERS_MAX:
        raise SignoffError(f"a review has at most {DOCUMENT_CHARACTERS_MAX} characters")
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SignoffError(f"this is not JSON: {error}") from None
    verify_review(document)
    return dict(document)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) != len(pairs):
        raise SignoffError("a name occurs twice in one object, so it is ambiguous")
    return parsed


def _no_constant(text: str) -> None:
    raise SignoffError(f"`{text}` is not JSON")


def write_review(document: Document) -> str:
    """Return the document as a JSON text for people and version control: indented, one form."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
