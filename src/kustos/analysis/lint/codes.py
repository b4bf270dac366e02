"""The table of `lint` findings: codes never change their meaning and are never reused.

`docs/reference/lint.md` is generated from this table.
"""

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final


@unique
class Severity(StrEnum):
    """The severity of a finding; the values are SARIF's levels."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The rank of the severity; 0 is the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class LintCode:
    """One kind of finding: a one-line summary, the reason and the remedy."""

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    fix: str

    @property
    def is_of_breadth(self) -> bool:
        """Whether the finding reports a broad ACL rather than an error."""
        return self.code.startswith("KUS1")


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_TABLE: Final = (
    # the set as a whole
    ("KUS001", "duplicate", _W, "the same ACL occurs twice in the file",
     "The second has no effect, but the right remains after the first is removed.",
     "Remove one of them."),
    ("KUS002", "conflicting", _E, "the same thing is allowed and denied",
     "A DENY and an ALLOW agree in resource, principal, host and operation. The DENY takes "
     "precedence; at most the operations that the ALLOW implies remain. One of the two is a mistake.",
     "Remove the unintended one."),
    ("KUS003", "shadowed", _W, "an ALLOW that DENYs override completely",
     "A DENY takes precedence regardless of its position, so this ALLOW can never decide. It looks like a "
     "right that no principal has.",
     "Remove it, or the DENY."),
    ("KUS004", "redundant", _W, "other ACLs cover all of it",
     "Without it every decision on a named resource, and every decision whether a principal may write to "
     "any topic, stays the same. Each of several equivalent ACLs is redundant, but not all of them at "
     "once: `kustos minimize` removes as many as possible together. No finding: a DESCRIBE in addition to an "
     "ALLOW of the same resource, principal and host that implies it, since `kustos acls add --producer` "
     "and `--consumer` create such pairs.",
     "Remove it."),
    ("KUS005", "idle-deny", _N, "a DENY of actions that are not allowed anyway",
     "It changes no decision today. It may be intended as a guard against an ALLOW that is added later.",
     "Remove it, unless it is such a guard."),
    ("KUS006", "super-user", _W, "an ACL of a super user",
     "A super user may do everything before any ACL is looked at, so neither an ALLOW nor a DENY for "
     "one decides. But with `allow.everyone.if.no.acl.found` it may be the only ACL that names a resource: "
     "then removing it opens the resource to everyone, and the finding says so.",
     "Remove it, or remove the principal from `super.users`."),
    ("KUS007", "describe-stays", _N, "a DENY that leaves DESCRIBE, which another ALLOW implies",
     "A DENY implies nothing, an ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE. A principal "
     "that is denied one of them but allowed another still sees the resource.",
     "To hide the resource, deny ALL or DESCRIBE too."),
    # breadth
    ("KUS101", "everyone-everywhere", _E, "everyone may use or change every resource of a type",
     "`User:*` is every principal of every type, also `User:ANONYMOUS` where a listener requires no "
     "login.",
     "Name principals, or a prefix, or deny by default."),
    ("KUS102", "everyone", _W, "everyone may use or change a resource",
     "`User:*` is every principal of every type, also `User:ANONYMOUS` where a listener requires no "
     "login.",
     "Name the principals."),
    ("KUS103", "like-a-super-user", _W, "a right from which all others follow",
     "ALL on every resource of a type, ALTER on the cluster (which writes ACLs) or CLUSTER_ACTION "
     "(which acts as a broker) make a super user that `super.users` does not show.",
     "Grant the operations and names that are needed."),
    # resources
    ("KUS201", "meaningless-operation", _W, "the operation does not apply to this type of resource",
     "Kafka stores such an ACL without an error, and no request ever needs it.",
     "Use an operation of the type."),
    ("KUS202", "cluster-name", _E, "a CLUSTER that is not called `kafka-cluster`",
     "The cluster has this one name; Kafka refuses to create an ACL with another.",
     "Write `kafka-cluster`, LITERAL."),
    ("KUS203", "asterisk-in-name", _E, "an asterisk that is taken as a character",
     "Only a LITERAL name that is `*` and nothing else matches every resource. Kafka knows no other "
     "patterns but PREFIXED.",
     "Write the beginning of the names as PREFIXED, without the asterisk."),
    ("KUS204", "impossible-topic", _E, "a name that no topic can have",
     "Topics have 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and are not called `.` "
     "or `..`.",
     "Correct the name."),
    ("KUS205", "hangs-kafka", _E, "a name on which Kafka's own authorizer fails",
     "Kafka's scan takes `*` for the smallest name. With an ACL whose name begins with a character "
     "below it (blank, `!`, `\"`, `#`, `$`, `%`, `&`, `'`, `(`, `)` or a control character) and goes "
     "on, there are names for which StandardAuthorizer of 4.4.0 loops for ever or throws. A client that may "
     "request a group of such a name can stop a broker's request handlers, one by one. kustos decides "
     "these rightly.",
     "Remove the ACL from every Kafka cluster."),
    ("KUS206", "empty-name", _E, "a resource without a name",
     "Kafka refuses to create it.",
     "Give a name, or `*` for every resource."),
    ("KUS207", "blanks-around-name", _W, "a name with blanks at its ends",
     "It matches a resource whose name has those blanks too.",
     "Remove the blanks."),
    ("KUS208", "no-such-resource", _W, "no resource has the name or begins with it",
     "The listing has no such resource: it was deleted, or the name is misspelt. "
     "A later resource of that name inherits the rights.",
     "Remove the ACL, or correct the name."),
    # hosts
    ("KUS301", "host-never-matches", _E, "a host that no client can have",
     "Kafka compares hosts as texts with the client's address as Java prints it: IPv4 dotted, IPv6 as "
     "eight groups without `::`. Host names are never resolved, and an address range that cannot be "
     "parsed matches no client. As an ALLOW it grants nothing, as a DENY it stops no client.",
     "Write the address as Java does, or a range."),
    ("KUS302", "host-bits", _W, "an address range with bits beyond its prefix",
     "Kafka ignores them, so the range is wider than its address looks.",
     "Write the first address of the range, or a longer prefix."),
    ("KUS303", "one-address-family", _N, "a range of every address of one family only",
     "An IPv4 client is in no IPv6 range and the other way round, and 0.0.0.0 is in no range at all.",
     "Write `*` if every host is meant."),
    # principals
    ("KUS401", "principal-asterisk", _E, "an asterisk that is taken as a character",
     "Only `User:*` matches everyone, of any type. `Group:*` and `User:pay-*` are principals "
     "of that very name.",
     "Write `User:*`, or name the principals."),
    ("KUS402", "blanks-around-principal", _E, "a principal with blanks at its ends",
     "Principals are compared exactly: no authenticated principal has these blanks.",
     "Remove the blanks."),
    ("KUS403", "principal-type-case", _E, "a principal type that differs from `User` only in case",
     "Types are compared exactly; Kafka creates principals of the type `User`.",
     "Write `User:`."),
    ("KUS404", "principal-type", _N, "a principal type other than `User`",
     "Kafka's own principal builder makes only `User` principals. Others need a custom "
     "`principal.builder.class`.",
     "Check that the cluster has one."),
    ("KUS405", "principal-without-name", _W, "a principal without a name",
     "It matches a principal whose name is empty, not everyone of the type.",
     "Give the name."),
    ("KUS406", "principal-without-type", _E, "a principal without a type",
     "Kafka's authorizer throws when it meets it.",
     "Write it as `User:name`."),
    # codes
    ("KUS501", "unknown-code", _E, "a code that this version does not know",
     "A newer Kafka wrote it. Here an unknown permission denies, and any other unknown code grants "
     "nothing.",
     "Use a version that knows it."),
)  # fmt: skip

LINT_CODES: Final[dict[str, LintCode]] = {row[0]: LintCode(*row) for row in _TABLE}
"""Every code that `lint` can find, in order."""
