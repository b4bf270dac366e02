"""How SCRAM users look."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kustos.cli.output import OutputFormat, print_json, print_lines, print_table

if TYPE_CHECKING:
    from kustos.client.admin import ScramUser


def user_document(user: "ScramUser") -> dict[str, Any]:
    """Return a user as programs read it; no part of a credential ever leaves a cluster."""
    credentials = [{"mechanism": name, "iterations": count} for name, count in user.credentials]
    return {"name": user.name, "credentials": credentials}


def print_users(users: "Sequence[ScramUser]", output: OutputFormat) -> None:
    """Print users with their mechanisms, one a line."""
    if output is OutputFormat.JSON:
        print_json({"users": [user_document(user) for user in users]})
        return
    if not users:
        print_lines("no SCRAM user")
        return
    rows = [(user.name, name, str(count)) for user in users for name, count in user.credentials]
    print_table(("user", "mechanism", "#iterations"), rows)
