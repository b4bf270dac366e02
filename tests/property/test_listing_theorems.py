"""Theorems about DescribeAcls: it lists what the filter matches at one moment, in Kafka's bytes."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import StandardAuthorizer, standard
from kustos.authorizer.replacement import dismantle, prepared, put_in_force
from kustos.metadata.control.acl_filters import each_match
from kustos.metadata.image import ImageBuilder
from kustos.protocol.described_acls import DescribedAcls
from kustos.wire import response_codec
from kustos.wire.api_keys import ApiKey
from tests.property.test_authorizer_theorems import acl_hosts, acl_sets, names, operations, permissions

principals = st.sampled_from(["User:alice", "User:bob", "User:*", "User:nobody"])
patterns = st.builds(
    ResourcePatternFilter,
    st.sampled_from([ResourceType.ANY, ResourceType.TOPIC, ResourceType.GROUP]),
    st.none() | names,
    st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
)
entries = st.builds(
    AccessControlEntryFilter,
    st.none() | principals,
    st.none() | acl_hosts,
    st.just(AclOperation.ANY) | operations,
    st.just(AclPermissionType.ANY) | permissions,
)
filters = st.just(EVERY_BINDING) | st.builds(AclBindingFilter, patterns, entries)


@st.composite
def sets_and_filters(draw: st.DrawFn) -> tuple[list[AclBinding], AclBindingFilter]:
    """Draw ACLs and a filter that often matches one of them."""
    acls, asked = draw(acl_sets), draw(filters)
    speaks_of_one: bool = draw(st.booleans())
    if acls and speaks_of_one:
        one = draw(st.sampled_from(acls))
        exact = AccessControlEntryFilter(
            one.entry.principal, one.entry.host, one.entry.operation, one.entry.permission_type
        )
        pattern = ResourcePatternFilter(one.pattern.resource_type, one.pattern.name, one.pattern.pattern_type)
        asked = draw(
            st.sampled_from(
                [
                    AclBindingFilter(pattern, exact),
                    AclBindingFilter(pattern, asked.entry_filter),
                    AclBindingFilter(asked.pattern_filter, exact),
                    AclBindingFilter(entry_filter=AccessControlEntryFilter(one.entry.principal)),
                ]
            )
        )
    return acls, asked


@given(sets_and_filters())
def test_many_match_as_each_does(drawn: tuple[list[AclBinding], AclBindingFilter]) -> None:
    acls, asked = drawn
    assert asked.among(acls) == [each for each in acls if asked.matches(each)]


@given(sets_and_filters(), st.integers(1, 30))
def test_a_listing_has_what_matches_and_nothing_else(
    drawn: tuple[list[AclBinding], AclBindingFilter], limit: int
) -> None:
    acls, asked = drawn
    authorizer = StandardAuthorizer.of(acls)
    with pytest.MonkeyPatch.context() as patch:
        # some sets are small enough for the index, and some are not
        patch.setattr(standard, "PIECE_ACLS", limit)
        found = list(authorizer.acls(asked))
    assert len(found) == len(set(found))
    assert set(found) == {each for each in acls if asked.matches(each)}


@given(acl_sets, st.lists(sets_and_filters().map(lambda drawn: drawn[1]), max_size=8), st.data())
def test_what_many_filters_match_is_what_each_does(
    acls: list[AclBinding], asked: list[AclBindingFilter], data: st.DataObject
) -> None:
    if acls:
        near = st.builds(
            AclBindingFilter,
            st.builds(
                ResourcePatternFilter,
                st.just(ResourceType.ANY),
                st.sampled_from(acls).map(lambda acl: acl.pattern.name) | names,
                st.sampled_from([PatternType.MATCH, PatternType.ANY]),
            ),
            entries,
        )
        asked = [*asked, *data.draw(st.lists(near, max_size=4))]
    builder = ImageBuilder()
    builder.add_acls([(UUID(int=number), each) for number, each in enumerate(acls)])
    image = builder.build(1, 1)
    found: dict[AclBindingFilter, list[AclBinding]] = {}
    for one, (acl_id, binding) in each_match(image, asked):
        assert image.acls[acl_id] == binding
        found.setdefault(one, []).append(binding)
    for each in asked:
        # equal filters are evaluated once, and the order is that of the image
        assert found.get(each, []) == [acl for acl in image.acls.values() if each.matches(acl)]


changes = st.lists(st.sampled_from(["read", "add", "remove", "load", "replace"]), max_size=30)


@given(sets_and_filters(), acl_sets, changes, st.data())
def test_a_listing_is_of_the_moment_it_was_made_whatever_changes_while_it_is_read(
    drawn: tuple[list[AclBinding], AclBindingFilter],
    others: list[AclBinding],
    steps: list[str],
    data: st.DataObject,
) -> None:
    acls, asked = drawn
    authorizer = StandardAuthorizer.of(acls)
    known = {UUID(int=number): each for number, each in enumerate(acls)}
    fresh = [each for each in others if each not in acls]
    found: list[AclBinding] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standard, "PIECE_ACLS", 1)
        pieces = authorizer.acls(asked).pieces()
        for number, step in enumerate(steps, start=1000):
            if step == "read":
                found += next(pieces, [])
            elif step == "add" and fresh:
                known[UUID(int=number)] = binding = fresh.pop()
                authorizer.add_acl(UUID(int=number), binding)
            elif step == "remove" and known:
                gone = data.draw(st.sampled_from(sorted(known)))
                assert authorizer.remove_acl(gone) == known.pop(gone)
            elif step == "load":
                authorizer.load_snapshot(known.items())
            elif step == "replace":
                new = prepared(authorizer, known.items())
                assert put_in_force(authorizer, new)
                dismantle(new)
            assert set(authorizer.acls()) == set(known.values())
        found += [each for piece in pieces for each in piece]
    assert len(found) == len(set(found))
    assert set(found) == {each for each in acls if asked.matches(each)}


@given(acl_sets, st.integers(1, 3), st.lists(st.integers(0, 10), max_size=5))
def test_an_answer_made_piece_by_piece_is_the_one_of_one_piece(
    acls: list[AclBinding], version: int, cuts: list[int]
) -> None:
    codec = response_codec(ApiKey.DESCRIBE_ACLS, version)
    answer = DescribedAcls(codec)
    rest = acls
    for cut in cuts:
        answer.add(rest[:cut])
        rest = rest[cut:]
    answer.add(rest)
    body = answer.body()
    message = codec.decode(body).message
    assert codec.encode(message) == body
    found = [
        (
            ResourcePattern(
                ResourceType.from_code(resource.resource_type),
                resource.resource_name,
                PatternType.from_code(resource.pattern_type),
            ),
            [(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in resource.acls],
        )
        for resource in message.resources
    ]
    expected: dict[ResourcePattern, list[tuple[str, str, int, int]]] = {}
    for each in acls:
        entry = each.entry
        described = (entry.principal, entry.host, int(entry.operation), int(entry.permission_type))
        expected.setdefault(each.pattern, []).append(described)
    assert len(found) == len(expected)
    assert dict(found) == expected
    assert (message.error_code, message.error_message, message.throttle_time) == (0, "", 0)
