"""Dynamic settings in the image: set, replaced, taken away, and whole again after a snapshot."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.metadata.image import ConfigRemoved, ConfigSet, ImageBuilder, image_of
from kustos.metadata.records import ConfigRecord, decode_record, encode_record

TOPIC, BROKER = 2, 4
TEXTS = st.sampled_from(["", "1", "a", "super.users"])
RECORDS = st.builds(
    ConfigRecord,
    resource_type=st.sampled_from([TOPIC, BROKER, 8, 16, 32, 77]),
    resource_name=TEXTS,
    name=TEXTS,
    value=st.none() | st.text(max_size=3),
)


def test_a_setting_is_told_when_it_is_made_replaced_and_taken_away() -> None:
    builder = ImageBuilder()
    assert builder.replay(ConfigRecord(BROKER, "", "k", "v")) == (ConfigSet(BROKER, "", "k", "v"),)
    assert builder.replay(ConfigRecord(BROKER, "", "k", "w")) == (ConfigSet(BROKER, "", "k", "w"),)
    assert builder.build(0, 0).configs_of(BROKER, "") == {"k": "w"}
    assert builder.replay(ConfigRecord(BROKER, "", "k", None)) == (ConfigRemoved(BROKER, "", "k"),)
    assert builder.build(0, 0).configs_of(BROKER, "") == {}


def test_what_is_not_there_can_be_taken_away() -> None:
    # KAFKA-14136: controllers write such records so that brokers look again
    assert ImageBuilder().replay(ConfigRecord(BROKER, "1", "k", None)) == (ConfigRemoved(BROKER, "1", "k"),)


def test_settings_of_one_resource_are_not_those_of_another() -> None:
    image = image_of([ConfigRecord(BROKER, "", "k", "all"), ConfigRecord(BROKER, "1", "k", "one")])
    assert image.configs_of(BROKER, "") == {"k": "all"}
    assert image.configs_of(BROKER, "1") == {"k": "one"}
    assert image.configs_of(TOPIC, "1") == {}


def test_no_value_is_in_the_text_of_an_image_or_a_change() -> None:
    builder = ImageBuilder()
    changes = builder.replay(ConfigRecord(BROKER, "", "ssl.key.password", "hunter2"))
    assert "hunter2" not in repr(changes) + repr(builder.build(0, 0))


@given(st.lists(RECORDS, max_size=20))
def test_a_snapshot_of_settings_gives_them_back(records: list[ConfigRecord]) -> None:
    image = image_of(records)
    again = image_of(decode_record(encode_record(record)) for record in image.records())
    assert again.same_state(image)


@given(st.lists(RECORDS, max_size=20))
def test_the_last_word_on_a_setting_counts(records: list[ConfigRecord]) -> None:
    told: dict[tuple[int, str, str], str] = {}
    for record in records:
        key = (record.resource_type, record.resource_name, record.name)
        told.pop(key, None)
        if record.value is not None:
            told[key] = record.value
    assert dict(image_of(records).configs.items()) == told
