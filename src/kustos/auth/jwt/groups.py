"""The groups of a client in the claims of its token.

The path to the claim has dots between names: `groups`, `realm_access.roles`. A name with dots stands in
brackets: `[https://example.com/groups]`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from kustos.auth.groups import GroupError, checked_groups
from kustos.auth.jwt.parts import TokenError
from kustos.settings import Kind, Scope, Setting

PATH_NAMES_MAX: Final = 8
"""The longest path: providers nest roles in two or three objects."""

DISTRIBUTED_CLAIMS: Final = "_claim_names"
"""The claim that lists claims which are elsewhere (OpenID Connect Core, section 5.6.2). Providers use it for
clients with too many groups."""

ClaimPath = tuple[str, ...]
"""The name of a claim, then the names of members in nested objects."""

_NAME: Final = r"(?:\[[^\[\]]+\]|[^\[\].\s]+)"
_PATH: Final = re.compile(rf"{_NAME}(?:\.{_NAME})*")


def parse_path(text: str) -> ClaimPath:
    """Return the names in a path; raise ValueError for a text that is not one."""
    names = re.findall(_NAME, text)
    if not _PATH.fullmatch(text) or len(names) > PATH_NAMES_MAX:
        raise ValueError(text)
    return tuple([name.strip("[]") for name in names])


GROUPS_CLAIM_PATH: Final[Setting[ClaimPath]] = Setting(
    "kustos.sasl.oauthbearer.groups.claim.path",
    Kind("string", "a name such as `groups`, or a path such as `realm_access.roles`", parse_path),
    None,
    "Bearer tokens",
    "The claim that lists the client's groups, to which the ACLs of `Group:` principals apply; a path with "
    "dots leads into nested objects, and a name with dots stands in brackets. Without this key, clients "
    "have no groups.",
    scope=Scope.MECHANISM,
    since="0.3.0",
)


def groups_in(claims: Mapping[str, Any], path: ClaimPath | None) -> tuple[str, ...]:
    """Return the groups at a path; none if there is no path or no such claim.

    A text is one group. Raise `TokenError` for groups that cannot be used, and for a claim that the token
    only refers to.
    """
    if path is None:
        return ()
    elsewhere = claims.get(DISTRIBUTED_CLAIMS)
    if elsewhere is not None and (not isinstance(elsewhere, dict) or path[0] in elsewhere):
        raise TokenError(f"its claim `{path[0]}` is not in the token, the provider has to put it there")
    value: Any = claims
    for name in path:
        if not isinstance(value, dict):
            raise TokenError(f"its claim `{path[0]}` has no member `{name}`, because it is not an object")
        value = value.get(name)
        if value is None:
            return ()
    try:
        return checked_groups([value] if isinstance(value, str) else value)
    except GroupError as error:
        raise TokenError(f"its claim `{path[0]}` cannot be used: {error}") from None
