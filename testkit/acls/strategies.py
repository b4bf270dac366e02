"""Strategies for ACLs whose names look like the syntax of the forms they are written in."""

from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

# names that look like the forms' own syntax, blanks and separators of every kind, and any other text
HOSTILE = (
    "`,(){}[]:=*\"'\\#&!|>%@-~ \t\r\n\x00\x0b\x1b\x7f\x85\xa0\u2028\ufeff\ud7ff\ue000\uffff\U0001d518éA0"
)
pieces = st.sampled_from(
    [", host=", "patternType=LITERAL)`:", "(principal=User:x", "Current ACLs for resource `", "null", "yes"]
)
names = st.one_of(
    st.text(HOSTILE, max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.one_of(pieces, st.text(HOSTILE, max_size=3)), max_size=4).map("".join),
)
stored_types = st.sampled_from([PatternType.UNKNOWN, PatternType.LITERAL, PatternType.PREFIXED])
bindings = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.sampled_from([kind for kind in ResourceType if kind is not ResourceType.ANY]),
        names,
        stored_types,
    ),
    st.builds(
        AccessControlEntry,
        names.map(lambda name: f"User:{name}"),
        names,
        st.sampled_from([operation for operation in AclOperation if operation is not AclOperation.ANY]),
        st.sampled_from([kind for kind in AclPermissionType if kind is not AclPermissionType.ANY]),
    ),
)
acl_sets = st.lists(bindings, max_size=6, unique=True)
