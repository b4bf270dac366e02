"""A SCRAM credential as Kafka wrote it in ZooKeeper: four parts, each well formed, or it is none."""

import pytest

from kustos.cli.migrate.scram_text import ScramTextError, credential_of
from kustos.metadata import ScramCredential

PARTS = {"salt": "c2FsdA==", "stored_key": "c3RvcmVk", "server_key": "c2VydmVy", "iterations": "4096"}


def text_of(parts: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in parts.items())


@pytest.mark.behaviour("B301")
def test_the_four_parts_are_a_credential_in_any_order() -> None:
    whole = ScramCredential(b"salt", b"stored", b"server", 4096)
    assert credential_of(text_of(PARTS)) == whole
    assert credential_of(text_of(dict(reversed(PARTS.items())))) == whole


@pytest.mark.behaviour("B301")
@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_there_once_and_well_formed(name: str) -> None:
    others = {each: value for each, value in PARTS.items() if each != name}
    wrong = "a" if name == "iterations" else "no base64!"
    for text in (
        text_of(others),
        text_of(PARTS) + f",{name}={PARTS[name]}",
        text_of(others | {name: ""}),
        text_of(others | {name: wrong}),
        text_of(others) + f",{name}",
        text_of(others) + f";{name}={PARTS[name]}",
        text_of(others | {name.upper(): PARTS[name]}),
        text_of(PARTS | {"pepper": "c2FsdA=="}),
    ):
        with pytest.raises(ScramTextError) as caught:
            credential_of(text)
        assert "c2VydmVy" not in str(caught.value)
