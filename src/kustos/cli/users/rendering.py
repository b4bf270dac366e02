"""Output of SCRAM users."""

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from kustos.cli.output import Column, Columns, OutputFormat, print_rows

if TYPE_CHECKING:
    from kustos.client.admin import DescribedScramUser

_Credential = tuple[str, str, int]
"""User, mechanism, iterations."""

USERS: Final[Columns[_Credential]] = Columns(
    (
        Column("name", itemgetter(0), title="user"),
        Column("mechanism", itemgetter(1)),
        Column("iterations", itemgetter(2)),
    ),
    lambda row: (row[0],),
    "the users, as `users describe` takes them",
)


def user_document(user: "DescribedScramUser") -> dict[str, Any]:
    """Return a user as a document; no part of a credential ever leaves a cluster."""
    credentials = [{"mechanism": name, "iterations": count} for name, count in user.credentials]
    return {"name": user.name, "credentials": credentials}


def print_users(users: "Sequence[DescribedScramUser]", output: OutputFormat) -> None:
    """Print users with their mechanisms, one per line."""
    rows = [(user.name, name, count) for user in users for name, count in user.credentials]
    print_rows(
        USERS,
        rows,
        output,
        document=lambda: {"users": [user_document(user) for user in users]},
        tail=() if users else ("no SCRAM user",),
    )
