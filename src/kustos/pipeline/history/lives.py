"""The lives of ACLs, credentials and tokens in a metadata log: one row for each, in one pass over the log.

A life begins with the record that created the item and ends with the one that removed or replaced it; in a
metadata transaction with the record that ended the transaction. Memory holds the state at one offset and,
for each ACL created since the oldest state, an offset and a time: some 600 bytes an ACL.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kustos.acl.forms import texts_of
from kustos.metadata import ScramMechanism
from kustos.metadata.image import (
    AclAdded,
    AclRemoved,
    Change,
    DelegationTokenRemoved,
    DelegationTokenSet,
    MetadataImage,
    ScramCredentialRemoved,
    ScramCredentialSet,
)
from kustos.metadata.inspection import LoggedChange, Passage, Timeline
from kustos.metadata.records import DelegationTokenRecord
from kustos.runtime import Storage
from kustos.wire import uuid_text

Row = tuple[Any, ...]

TIME_MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that Spark shows; a token without an end has a later time."""


class Since(NamedTuple):
    """The beginning of a life, in the order of the table's columns."""

    offset: int
    time_us: int
    is_in_first_snapshot: bool = False


class Until(NamedTuple):
    """The end of a life; both are None while it lasts."""

    offset: int | None = None
    time_us: int | None = None


NOW: Final = Until()


def microseconds(time_ms: int) -> int:
    """Return a time as Spark counts, cut to what it shows."""
    return max(-TIME_MAX_MS, min(time_ms, TIME_MAX_MS)) * 1000


def _validity(since: Since, until: Until) -> Row:
    return since.offset, since.time_us, until.offset, until.time_us, since.is_in_first_snapshot


def acl_rows(passage: Passage) -> Iterator[Row]:
    """Yield the lives of ACLs, as ACL_HISTORY_SCHEMA: those that ended in log order, then those that last."""
    first = _first(passage)
    since: dict[int, Since] = {}
    for logged in passage.changes():
        change = logged.change
        if isinstance(change, AclAdded):
            since[change.id.int] = _at(passage, logged)
        elif isinstance(change, AclRemoved):
            born = since.pop(change.id.int, first)
            texts = texts_of(change.binding).values()
            yield uuid_text(change.id), *texts, *_validity(born, _end(passage, logged))
    for acl_id, binding in passage.view().acls.items():
        yield uuid_text(acl_id), *texts_of(binding).values(), *_validity(since.get(acl_id.int, first), NOW)


KeyedState = tuple[Any, Row | None] | None
"""The key and columns of a changed item, None for columns if it was removed; None for other changes."""


def _scram(change: Change) -> KeyedState:
    if isinstance(change, ScramCredentialSet):
        return (change.user, change.mechanism), (change.credential.iterations,)
    if isinstance(change, ScramCredentialRemoved):
        return (change.user, change.mechanism), None
    return None


def _scram_row(key: Any, value: Row) -> Row:
    user, mechanism = key
    names = {each.value: each.mechanism_name for each in ScramMechanism}
    return user, names.get(mechanism, f"UNKNOWN({mechanism})"), *value


def _scram_state(image: MetadataImage) -> Iterator[tuple[Any, Row]]:
    for key, credential in image.scram_credentials.items():
        yield key, (credential.iterations,)


def _token_columns(token: DelegationTokenRecord) -> Row:
    times = (token.issue_timestamp_ms, token.max_timestamp_ms, token.expiration_timestamp_ms)
    return token.owner, token.requester, list(token.renewers), *map(microseconds, times)


def _token(change: Change) -> KeyedState:
    if isinstance(change, DelegationTokenSet):
        return change.token.token_id, _token_columns(change.token)
    if isinstance(change, DelegationTokenRemoved):
        return change.token_id, None
    return None


def _token_row(key: Any, value: Row) -> Row:
    return key, *value


def _token_state(image: MetadataImage) -> Iterator[tuple[Any, Row]]:
    for token_id, token in image.delegation_tokens.items():
        yield token_id, _token_columns(token)


def _rows(
    passage: Passage,
    state: Callable[[MetadataImage], Iterator[tuple[Any, Row]]],
    keyed_state_of: Callable[[Change], KeyedState],
    row: Callable[[Any, Row], Row],
) -> Iterator[Row]:
    """Yield the lives of items that are set repeatedly: each setting is a life of its own."""
    first = _first(passage)
    lives = {key: (value, first) for key, value in state(passage.view())}
    for logged in passage.changes():
        keyed = keyed_state_of(logged.change)
        if keyed is None:
            continue
        key, value = keyed
        former = lives.pop(key, None)
        if former is not None:
            yield *row(key, former[0]), *_validity(former[1], _end(passage, logged))
        if value is not None:
            lives[key] = value, _at(passage, logged)
    for key, (value, since) in lives.items():
        yield *row(key, value), *_validity(since, NOW)


def scram_credential_rows(passage: Passage) -> Iterator[Row]:
    """Yield the lives of SCRAM credentials, as SCRAM_CREDENTIAL_HISTORY_SCHEMA."""
    return _rows(passage, _scram_state, _scram, _scram_row)


def delegation_token_rows(passage: Passage) -> Iterator[Row]:
    """Yield the lives of delegation tokens, as DELEGATION_TOKEN_HISTORY_SCHEMA."""
    return _rows(passage, _token_state, _token, _token_row)


def range_rows(passage: Passage) -> Iterator[Row]:
    """Yield one row with the first and last offset and time of the history, as METADATA_RANGE_SCHEMA."""
    first, changes = _first(passage), 0
    for _ in passage.changes():
        changes += 1
    yield (
        first.offset,
        first.time_us,
        passage.offset,
        microseconds(passage.latest_ms),
        passage.beginning.is_first,
        passage.in_transaction,
        changes,
    )


def _first(passage: Passage) -> Since:
    return Since(passage.offset, microseconds(passage.time_ms), is_in_first_snapshot=True)


def _at(passage: Passage, logged: LoggedChange) -> Since:
    return Since(logged.offset, microseconds(passage.latest_ms))


def _end(passage: Passage, logged: LoggedChange) -> Until:
    return Until(logged.offset, microseconds(passage.latest_ms))


ROWS: Final[dict[str, Callable[[Passage], Iterator[Row]]]] = {
    "acls": acl_rows,
    "scram_credentials": scram_credential_rows,
    "delegation_tokens": delegation_token_rows,
    "range": range_rows,
}
"""Row generators by the value of the option `table`."""


def rows_of(
    path: Path,
    table: str,
    storage: Storage,
    end_offset: int | None = None,
    *,
    ignore_torn_tail: bool = False,
) -> Iterator[Row]:
    """Yield the rows of a table over the metadata directory, segment or snapshot at `path`.

    The pass begins at the oldest state from which no offset is missing, and ends before `end_offset`, or at
    the end of the log. Raises `MetadataError`.
    """
    timeline = Timeline(path, storage, ignore_torn_tail=ignore_torn_tail)
    return ROWS[table](timeline.passage(timeline.unbroken(), end_offset))
