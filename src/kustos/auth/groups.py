"""The groups of a client: which names they may have, and how many there may be.

ACLs of `Group:` principals apply to the client. A DENY may be among them, so a login whose groups are not
usable is refused as a whole: leaving out a group could allow what the group is denied.
"""

from typing import Final

from kustos.acl import WILDCARD
from kustos.auth.errors import AuthError

GROUPS_MAX: Final = 256
"""The maximum number of groups of a client: a decision may read the ACLs of each. Providers that limit groups
in tokens allow 200 or fewer."""

GROUP_NAME_MAX_CHARACTERS: Final = 256
"""The maximum length of a group's name, which every ACL of the group contains. Directories allow 256 or
fewer."""


class GroupError(AuthError, ValueError):
    """A client has groups that cannot be used; the text contains no part of them."""


def checked_groups(names: object) -> tuple[str, ...]:
    """Return the names of a client's groups, each once; raise `GroupError` if they are not usable."""
    if type(names) is not list and type(names) is not tuple:
        raise GroupError("the groups are not a list of texts")
    if len(names) > GROUPS_MAX:
        raise GroupError(f"there are more than {GROUPS_MAX} groups")
    for name in names:
        if type(name) is not str:
            raise GroupError("the groups are not a list of texts")
        if not 0 < len(name) <= GROUP_NAME_MAX_CHARACTERS:
            raise GroupError(f"a group's name is empty or longer than {GROUP_NAME_MAX_CHARACTERS} characters")
        if not name.isprintable() or name == WILDCARD:
            # a reader would take an ACL of `Group:*` for one of every group
            raise GroupError("a group's name is `*` or contains a character that cannot be printed")
    return tuple(dict.fromkeys(names))
