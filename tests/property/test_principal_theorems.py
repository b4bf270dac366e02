"""Theorem: a principal survives its bytes, which Kafka's nodes pass on with a request of its."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.protocol import RefuseRequestError
from kustos.protocol.envelopes import principal_bytes, principal_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
PRINCIPALS = st.builds(KafkaPrincipal, TEXTS, TEXTS, st.booleans())


@pytest.mark.behaviour("B293")
@given(PRINCIPALS)
def test_a_principal_is_read_as_it_was_written_with_the_flag_of_tokens(principal: KafkaPrincipal) -> None:
    read = principal_of(principal_bytes(principal))
    # equality leaves the flag out
    assert (read, read.token_authenticated) == (principal, principal.token_authenticated)


@given(PRINCIPALS, st.data())
def test_a_part_of_its_bytes_is_no_principal(principal: KafkaPrincipal, data: st.DataObject) -> None:
    whole = principal_bytes(principal)
    size = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(RefuseRequestError):
        principal_of(whole[:size])
