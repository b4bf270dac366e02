"""The jars a person is told to bring are the ones that every test here runs with."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from kustos.pipeline.errors import JarsError
from kustos.pipeline.run.topic import KAFKA_COORDINATES, download_jars
from kustos.pipeline.run.topic.settings import TopicSettings
from testkit.spark_jars import SPARK_KAFKA


def test_maven_brings_the_jars_that_were_tested(tmp_path: Path) -> None:
    said: list[str] = []
    jars = download_jars(tmp_path / "jars", said.append)
    assert said
    pinned = dict(line.split()[::-1] for line in SPARK_KAFKA.digests.read_text().splitlines())
    assert {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars} == pinned
    assert sorted((tmp_path / "jars").iterdir()) == sorted(jars)


def test_without_maven_the_coordinates_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JarsError, match="`mvn` is not installed") as raised:
        download_jars(tmp_path / "jars")
    assert all(coordinate in str(raised.value) for coordinate in KAFKA_COORDINATES)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JarsError, match="cannot create"):
        download_jars(tmp_path / "file" / "jars")


def test_what_is_said_of_settings_holds_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=broker:9092\nssl.keystore.password=k3ystore\n"
        'sasl.jaas.config=x.Module required username="u5er" password="p4ss word";\ngroup.id=mine\n'
    )
    settings = TopicSettings.from_file("audit", file)
    text = f"{settings!r} {settings.blotted('k3ystore and p4ss word and u5er at broker:9092')}"
    assert "k3ystore" not in text
    assert "p4ss" not in text
    assert "broker:9092" in text
    assert "kafka.group.id" not in settings.options()
    assert settings.options()["kafka.ssl.keystore.password"] == "k3ystore"


def test_a_source_gets_as_many_records_at_a_time_as_it_is_told() -> None:
    settings = TopicSettings(topic="audit", client_properties={"bootstrap.servers": "broker:9092"})
    own = {**settings.client_properties, "max.poll.records": "7", "receive.buffer.bytes": "65536"}
    assert settings.options()["kafka.max.poll.records"] == "4000"
    assert settings.options()["kafka.receive.buffer.bytes"] == "-1"
    assert replace(settings, client_properties=own).options()["kafka.max.poll.records"] == "7"
    assert replace(settings, client_properties=own).options()["kafka.receive.buffer.bytes"] == "65536"
    assert "max.poll.records" not in settings.client_options()  # which admin clients have, too
