"""The configuration is understood whole, or refused with line, key and rule."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel

from kustos.pipeline.configuration import (
    PipelineConfiguration,
    TableSettings,
    parse_configuration,
    read_configuration,
)
from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.places import StorePath

WHOLE = """version: 1
tables:
  path: tables
  keep_raw: true
inputs:
  - files: /var/log/kafka
    time_zone: Europe/Berlin
    on_damaged_file: quarantine
  - topic: kustos-audit
    command_config: client.properties
acls:
  source: acls.yaml
  super_users: User:admin
metadata: /var/lib/kustos/metadata
review:
  dormant_days: 30
  teams:
    User:pay-*: payments
spark:
  master: local[2]
"""


def test_a_whole_file_is_understood_and_its_paths_are_those_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(WHOLE)
    read = read_configuration(path)
    assert read.tables.path == tmp_path / "tables"
    assert read.inputs[0].files == Path("/var/log/kafka")
    assert read.inputs[0].on_damaged_file == "quarantine"
    assert read.inputs[1].command_config == tmp_path / "client.properties"
    assert read.acls is not None
    assert read.acls.super_users == "User:admin"
    assert read.review.teams == {"User:pay-*": "payments"}
    assert read.spark.master == "local[2]"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("version: 1", "version: 2"), "line 1: `version`"),
        (("version: 1", "version: true"), "line 1: `version` takes a number"),
        (("keep_raw: true", "keep_row: true"), "line 4: `tables.keep_row` is not a key"),
        (("keep_raw: true", "format: delta"), "line 4: `tables.format` is not a key"),
        (("Europe/Berlin", "Mars/Olympus"), "line 7: `inputs.0.time_zone` is not a time zone"),
        (
            ("    command_config: client.properties\n", ""),
            "line 9: `inputs.1` a topic needs `command_config`",
        ),
        (("  - topic: kustos-audit\n    command", "  - command"), "either `files` or `topic`"),
        (("dormant_days: 30", "dormant_days: yes"), "line 16: `review.dormant_days` takes a number"),
        (("dormant_days: 30", "dormant_days: 0"), "line 16: `review.dormant_days`"),
        (("  source: acls.yaml\n", ""), "`acls.source` is missing"),
        (("metadata:", "review: {}\nmetadata:"), "line 16: `review` is set twice"),
        (("review:\n", "review: [\n"), "this is not YAML"),
        (("  master: local[2]", "  remote: http://x"), "line 20: `spark.remote`"),
        ((WHOLE, "- 1"), "line 1: takes keys with values"),
        ((WHOLE, ""), "line 1: `version` is missing"),
        ((WHOLE, "!!python/object:os.system x"), "this is not YAML"),
        (("keep_raw: true", "5: true"), "line 4: `tables.5` is a key that is not a text, put it in quotes"),
        (("    User:pay-*:", "    5:"), "line 18: `review.teams.5` is a key that is not a text"),
        (("source: acls.yaml", "source: ''"), "line 12: `acls.source` should have at least 1 character"),
        (("source: acls.yaml", "source: [a]"), "line 12: `acls.source` should be a valid string"),
        (("keep_raw: true", "a: &a\n    b: *a"), "line 4: `tables.a` is not a key"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(change: tuple[str, str], sentence: str) -> None:
    assert change[0] in WHOLE
    with pytest.raises(ConfigurationError) as raised:
        parse_configuration(WHOLE.replace(*change), Path("pipeline.yml"))
    assert sentence in str(raised.value)
    assert str(raised.value).startswith("pipeline.yml")


def test_aliases_that_hold_each_other_many_times_are_read_once() -> None:
    """Without that, this file would take years."""
    lists = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 30))
    with pytest.raises(ConfigurationError, match="line 21: `x0` is not a key"):
        parse_configuration(f"{WHOLE}x0: &x0 a\n{lists}", Path("pipeline.yml"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the configuration `.*nowhere`: no such file"):
        read_configuration(tmp_path / "nowhere")
    (tmp_path / "latin").write_bytes(b"version: 1\n# \xe9\n")
    with pytest.raises(ConfigurationError, match="line 2: this is not text in UTF-8"):
        read_configuration(tmp_path / "latin")


def keys_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Yield every key that a configuration may have, as the page writes it."""
    for name, field in model.model_fields.items():
        args = [field.annotation, *get_args(field.annotation)]
        inner = next((arg for arg in args if isinstance(arg, type) and issubclass(arg, BaseModel)), None)
        if inner is None or get_origin(field.annotation) is Mapping:
            yield f"{path}{name}"
        else:
            is_list = get_origin(field.annotation) is tuple
            yield from keys_of(inner, f"{path}{name}{'[]' if is_list else ''}.")


def test_the_page_tells_of_every_key_and_of_no_other() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "pipeline-configuration.md"
    told = re.findall(r"^\| `([a-z0-9_.\[\]]+)` \|", page.read_text(), re.MULTILINE)
    assert told == list(keys_of(PipelineConfiguration))


def test_tables_may_lie_in_an_object_store_with_the_progress_of_streams_on_a_disk(tmp_path: Path) -> None:
    def tables(text: str) -> TableSettings:
        return parse_configuration(f"version: 1\ntables: {{{text}}}\n", tmp_path / "pipeline.yml").tables

    there = tables("path: s3://lake/access, checkpoints: streams")
    assert there.path == StorePath("s3://lake/access")
    assert there.folder_of_checkpoints() == tmp_path / "streams"
    assert tables("path: tables").folder_of_checkpoints() == tmp_path / "tables" / "_streams"
    with pytest.raises(ConfigurationError, match=r"set `tables\.checkpoints`"):
        tables("path: s3://lake/access").folder_of_checkpoints()
    with pytest.raises(ConfigurationError, match=r"line 2: `tables\.path` an address in an object") as caught:
        tables("path: 's3://key:s3cret@lake/access'")
    assert "s3cret" not in str(caught.value)
