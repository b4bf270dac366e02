"""Theorems about lint: every ACL that it calls useless can go, and no other ACL can."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, AclPermissionType, ResourceType
from kustos.analysis import Rules, diff
from kustos.analysis.lint import LINT_CODES, lint
from testkit.acls.small_sets import acl_sets, rules
from testkit.acls.strategies import acl_sets as any_acl_sets

IMPLYING_DESCRIBE = {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
OF_NO_USE = {"KUS003", "KUS004", "KUS005", "KUS301"}


def says_describe_plainly(acl: AclBinding, acls: list[AclBinding]) -> bool:
    """Return whether the same principal, resource and host also have an ALLOW of more than DESCRIBE."""
    beside = [other for other in acls if replace(other, entry=acl.entry) == acl and other != acl]
    return any(
        other.entry.operation in IMPLYING_DESCRIBE
        and replace(other.entry, operation=AclOperation.DESCRIBE) == acl.entry
        for other in beside
    )


@given(acl_sets, rules)
def test_an_acl_is_of_no_use_if_and_only_if_nothing_changes_without_it(
    acls: list[AclBinding], rules: Rules
) -> None:
    codes: dict[int, set[str]] = {number: set() for number in range(len(acls))}
    for finding in lint(acls, rules):
        codes[finding.number].add(finding.code)
    for number, acl in enumerate(acls):
        without = [other for other in acls if other != acl]
        is_useless = diff(acls, without, rules).is_empty
        if rules.allow_everyone_if_no_acl_found and "KUS301" in codes[number]:
            continue  # it matches no client, but names the resource
        if "KUS202" in codes[number]:
            continue  # it should not be there at all, whether it matches or not
        if "KUS004" not in codes[number] and says_describe_plainly(acl, acls):
            continue  # `acls add --producer` creates such pairs
        # contradicted ACLs and ACLs of super users have their own codes
        told = OF_NO_USE | ({"KUS002", "KUS006"} if is_useless else set())
        assert is_useless is bool(codes[number] & told), (acl, codes[number])


@given(acl_sets, rules)
def test_what_other_acls_say_is_said_by_those_that_are_named(acls: list[AclBinding], rules: Rules) -> None:
    for finding in lint(acls, Rules(super_users=rules.super_users)):
        if finding.code in {"KUS003", "KUS004"} and len(finding.related) == 1:
            named = [acls[finding.number], acls[finding.related[0]]]
            # let everyone do everything else, so that the effect of a DENY shows
            assert diff(named, named[1:]).is_empty
            if finding.code == "KUS003":
                assert named[1].entry.permission_type is AclPermissionType.DENY


@given(any_acl_sets, st.booleans(), st.sets(st.text(max_size=3)))
def test_any_set_can_be_linted(acls: list[AclBinding], is_open: bool, names: set[str]) -> None:
    rules = Rules(super_users=frozenset({"User:"}), allow_everyone_if_no_acl_found=is_open)
    found = lint([*acls, *acls], rules, {ResourceType.TOPIC: frozenset(names)})
    assert all(finding.code in LINT_CODES for finding in found)
    assert {finding.number for finding in found} <= set(range(2 * len(acls)))
    assert len([finding for finding in found if finding.code == "KUS001"]) == len(acls)
