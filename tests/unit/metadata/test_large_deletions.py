"""Deletions that match very much."""

import pytest

from kustos.acl import AclBindingFilter, ResourcePatternFilter
from kustos.metadata.control import AclsDeleted, acls, delete_acls
from kustos.metadata.features import DEFAULT_LEVEL
from tests.unit.metadata.test_control_acls import MANY, TOPIC, image_at, invalid


def test_an_answer_names_so_many_acls_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "NAMED_ACLS_MAX", 6)
    image, every = image_at(DEFAULT_LEVEL, *MANY[:3]), AclBindingFilter()
    topics = AclBindingFilter(ResourcePatternFilter(TOPIC))
    assert [len(each.deleted) for each in delete_acls(image, [every, every]).results] == [3, 3]
    assert [len(each.deleted) for each in delete_acls(image, [every, topics]).results] == [3, 3]
    refused = AclsDeleted(error=invalid("Cannot name more than 6 acls in a single delete operation."))
    for asked in ([every] * 3, [every, topics, every]):
        outcome = delete_acls(image, asked)
        assert (outcome.records, outcome.results) == ((), (refused,) * 3)
