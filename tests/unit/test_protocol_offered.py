"""What clients are offered: recreated when upstream offers something else, and only then."""

from kustos.protocol import OfferedApis
from kustos.wire import ApiKey, Message, request_codec, response_codec

METADATA = int(ApiKey.METADATA)


def features(epoch: int) -> Message:
    codec = response_codec(ApiKey.API_VERSIONS, 4)
    return codec.new(finalized_features_epoch=epoch)


def test_versions_and_bodies_follow_upstream() -> None:
    upstream, told = {METADATA: (0, 8)}, features(7)
    offered = OfferedApis(lambda: upstream, lambda: told)
    first, body = offered.versions, offered.body(4)
    assert first[METADATA] == (0, 8)
    assert offered.versions is first
    assert offered.body(4) is body

    def decoded(version: int) -> Message:
        return response_codec(ApiKey.API_VERSIONS, version).decode(offered.body(version)).message

    def told_of_metadata(version: int) -> int:
        return next(int(each.max_version) for each in decoded(version).api_keys if each.api_key == METADATA)

    upstream = {METADATA: (0, 9)}
    assert [told_of_metadata(version) for version in range(5)] == [9] * 5
    assert offered.versions[METADATA] == (0, 9)
    assert first[METADATA] == (0, 8), "who was offered something keeps what was said"
    assert decoded(4).finalized_features_epoch == 7
    told = features(8)
    assert decoded(4).finalized_features_epoch == 8


def test_each_body_is_that_of_its_version() -> None:
    offered = OfferedApis(lambda: {METADATA: (0, 12)})
    bodies = [offered.body(version) for version in range(5)]
    for version, body in enumerate(bodies):
        assert response_codec(ApiKey.API_VERSIONS, version).decode(body).message.error_code == 0
    assert request_codec(ApiKey.API_VERSIONS, 3).flexible
    assert bodies[2] != bodies[3]
