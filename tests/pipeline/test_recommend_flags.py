"""What flags and the configuration choose together, before any Spark."""

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.pipeline.recommend_flags import choices, resource_of
from kustos.cli.run import run
from kustos.pipeline.answer_settings import RecommendSettings
from kustos.pipeline.configuration import parse_configuration
from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.privilege import DEFAULT_OPTIONS, EVERY_USE, HostChoice, Legitimate, PrivilegeOptions


def settings(text: str) -> RecommendSettings:
    whole = f"version: 1\ntables: {{path: tables}}\nrecommend: {text}\n"
    return parse_configuration(whole, Path("pipeline.yml")).recommend


def chosen(text: str = "{}", **flags: Any) -> tuple[PrivilegeOptions, Legitimate]:
    return choices(settings(text), flags, literal=False)


def test_the_section_has_every_option_of_python() -> None:
    known = {field.name for kind in (PrivilegeOptions, Legitimate) for field in fields(kind)}
    # the period is that of `--since` and `--until`, the super users are those of `acls`
    elsewhere = {"from_day", "to_day", "super_users"}
    assert set(RecommendSettings.model_fields) - {"within_today"} == known - elsewhere


def test_without_a_word_the_defaults_of_python_hold() -> None:
    assert chosen(hosts=None, uses_min=None) == (DEFAULT_OPTIONS, EVERY_USE)


def test_the_configuration_is_taken_and_flags_go_before_it() -> None:
    text = "{prefix_members_min: 5, separators: '.', keeps_hidden: false, uses_min: 2, hosts: exact}"
    options, legitimate = chosen(text, uses_min=7, keeps_hidden=True, prefix_length_min=2)
    assert (options.prefix_members_min, options.separators, options.prefix_length_min) == (5, ".", 2)
    assert (options.hosts, legitimate.uses_min, legitimate.keeps_hidden) == (HostChoice.EXACT, 7, True)


def test_what_is_never_earned_is_nought_or_null() -> None:
    options, _ = chosen("{wildcard_share: null}", all_operations_min=0)
    assert (options.wildcard_share, options.all_operations_min) == (None, None)
    options, _ = chosen("{uses_min: null}")
    assert options == DEFAULT_OPTIONS
    assert choices(settings("{}"), {}, literal=True)[0].over_grant_weight == math.inf


def test_resources_are_excluded_by_name_or_beginning() -> None:
    _, legitimate = chosen("{resources_excluded: ['TOPIC:a:b']}")
    literal = ResourcePattern(ResourceType.TOPIC, "a:b", PatternType.LITERAL)
    assert legitimate.resources_excluded == (literal,)
    assert resource_of("transactional_id:PREFIXED:x:") == ResourcePattern(
        ResourceType.TRANSACTIONAL_ID, "x:", PatternType.PREFIXED
    )
    assert resource_of("group:LITERAL:PREFIXED:x").name == "PREFIXED:x"


@pytest.mark.parametrize("text", ["payments", "TOPIC:", "ANY:x", "SHELF:x", "TOPIC:PREFIXED:"])
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not a resource, write `TOPIC:name`"):
        resource_of(text)


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("{coverage: 2}", {}, "`coverage` is out of range"),
        ("{}", {"separators": ".."}, "`separators` is out of range"),
        ("{}", {"hosts": "all"}, "`--hosts all` is none of"),
    ],
)
def test_choices_that_mean_nothing_are_wrong_use(text: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message) as raised:
        chosen(text, **flags)
    assert raised.value.failure.exit_code == ExitCode.USAGE


def test_a_choice_of_another_kind_is_told_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match=r"line 3: `recommend\.uses_min` takes a number"):
        settings("{uses_min: true}")


def test_a_dry_run_says_every_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "acls.yaml").write_text("acls: []\n")
    (tmp_path / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\nacls: {source: acls.yaml}\nrecommend: {within_today: false}\n"
    )
    words = ["--wildcard-share", "0", "--show-hidden", "--exclude-resource", "TOPIC:PREFIXED:secret."]
    config = ["--config", str(tmp_path / "pipeline.yml")]
    assert run(["pipeline", "recommend", "--dry-run", *words, *config]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  wildcard_share: never",
        "  resources_excluded: TOPIC:PREFIXED:secret.",
        "  keeps_hidden: False",
        "  within_today: false",
    ]


def test_within_todays_acls_is_the_default_and_needs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert settings("{}").within_today
    (tmp_path / "tables").mkdir()
    (tmp_path / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\n")
    command = ["pipeline", "recommend", "--dry-run", "--config", str(tmp_path / "pipeline.yml")]
    assert run(command) == ExitCode.USAGE
    assert "no ACLs of today to stay within" in capsys.readouterr().err
    assert run([*command, "--beyond-today"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[1:] == ["  within_today: false"]
