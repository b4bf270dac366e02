"""Ids on the command line: people give the beginning of an id, and each beginning names exactly one."""

from collections.abc import Iterable, Sequence
from typing import Final

from kustos.runtime import did_you_mean

ID_LENGTH_MIN: Final = 6
"""A shorter beginning of an id would soon be that of several."""


def ids_of_beginnings(
    known: Iterable[str], beginnings: Sequence[str], what: str, error: type[Exception], where: str
) -> list[str]:
    """Return the id that begins so for each beginning, in order and without repetition.

    Raises `error` for a beginning of no id, of several or of fewer than `ID_LENGTH_MIN` characters; the text
    says `what` the ids are of and `where` to look them up.
    """
    known, found = list(known), list[str]()
    for beginning in beginnings:
        if len(beginning) < ID_LENGTH_MIN:
            raise error(f"`{beginning}` is too short, give {ID_LENGTH_MIN} characters of the id or more")
        ids = [each for each in known if each.startswith(beginning.lower())]
        if len(ids) != 1:
            count = "several ids begin" if ids else "no id begins"
            hint = "" if ids else did_you_mean(beginning, {each[: len(beginning)] for each in known})
            raise error(f"of the {what} {count} with `{beginning}`, {hint or f'see {where}'}")
        found += ids
    return list(dict.fromkeys(found))
