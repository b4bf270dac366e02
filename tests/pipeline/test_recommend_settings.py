"""The options of `recommend` in the configuration, before any Spark."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.answer_settings import RecommendSettings, resource_of
from kustos.pipeline.configuration import parse_configuration
from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.privilege import DEFAULT_OPTIONS, EVERY_USE, HostChoice, Legitimate, PrivilegeOptions


def settings(text: str) -> RecommendSettings:
    whole = f"version: 1\ntables: {{path: tables}}\nrecommend: {text}\n"
    return parse_configuration(whole, Path("pipeline.yml")).recommend


def chosen(text: str = "{}", **others: Any) -> tuple[PrivilegeOptions, Legitimate]:
    return settings(text).options(**others)


def test_the_section_has_every_option_of_python() -> None:
    known = {field.name for kind in (PrivilegeOptions, Legitimate) for field in fields(kind)}
    # the period is that of `--since` and `--until`, the super users are those of `acls`
    elsewhere = {"from_day", "to_day", "super_users"}
    assert set(RecommendSettings.model_fields) - {"within_today"} == known - elsewhere


def test_without_a_word_the_defaults_of_python_hold() -> None:
    assert chosen() == (DEFAULT_OPTIONS, EVERY_USE)


def test_the_options_of_the_file_are_used_with_those_of_the_run() -> None:
    text = "{prefix_members_min: 5, separators: '.', keeps_hidden: false, uses_min: 2, hosts: exact}"
    options, legitimate = chosen(text, super_users=frozenset({"User:admin"}))
    assert (options.prefix_members_min, options.separators, options.prefix_length_min) == (5, ".", 4)
    assert (options.hosts, legitimate.uses_min, legitimate.keeps_hidden) == (HostChoice.EXACT, 2, False)
    assert legitimate.super_users == {"User:admin"}


def test_zero_and_null_mean_never() -> None:
    options, _ = chosen("{wildcard_share: null, all_operations_min: 0}")
    assert (options.wildcard_share, options.all_operations_min) == (None, None)
    options, _ = chosen("{uses_min: null}")
    assert options == DEFAULT_OPTIONS
    assert not chosen("{over_grant_weight: .inf}")[0].has_prefixes


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
    with pytest.raises(ValueError, match="is not a resource: use `TOPIC:name`"):
        resource_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  coverage: 2", "`recommend.coverage` is out of range, use a share above 0 and up to 1"),
        ("  separators: '..'", "`recommend.separators` is out of range, use characters, each of them once"),
        (
            "  hosts: exacts",
            "`recommend.hosts` is `exacts`, use `any`, `exact` or `ranges`, did you mean `exact`",
        ),
        (
            "  prefix_lenght_min: 3",
            "`recommend.prefix_lenght_min` is not a key of the configuration, "
            "did you mean `prefix_length_min`",
        ),
        (
            "  resources_excluded: [payments]",
            "`recommend.resources_excluded.0` is `payments`, which is not a resource: "
            "use `TOPIC:name` or `TOPIC:PREFIXED:name`",
        ),
    ],
)
def test_an_invalid_option_is_reported_with_file_and_line(text: str, message: str) -> None:
    whole = f"version: 1\ntables: {{path: tables}}\nrecommend:\n  uses_min: 2\n{text}\n"
    with pytest.raises(ConfigurationError) as raised:
        parse_configuration(whole, Path("pipeline.yml"))
    assert str(raised.value) == f"pipeline.yml, line 5: {message}"


def test_an_unknown_kind_of_anomaly_is_reported_with_file_and_line() -> None:
    rule = "{kind: SWEEPS, until: 2026-12-31, reason: test}"
    whole = f"version: 1\ntables: {{path: tables}}\nanomalies:\n  suppressions:\n    - {rule}\n"
    with pytest.raises(ConfigurationError) as raised:
        parse_configuration(whole, Path("pipeline.yml"))
    assert str(raised.value) == (
        "pipeline.yml, line 5: `anomalies.suppressions.0.kind` is `SWEEPS`, which is not a kind of anomaly; "
        "did you mean `SWEEP`"
    )


def test_a_choice_of_another_kind_is_told_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match=r"line 3: `recommend\.uses_min` takes a number"):
        settings("{uses_min: true}")


def test_a_dry_run_says_every_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "acls.yaml").write_text("acls: []\n")
    (tmp_path / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\nacls: {source: acls.yaml}\nrecommend:\n"
        "  within_today: false\n  wildcard_share: 0\n  keeps_hidden: false\n"
        "  resources_excluded: ['TOPIC:PREFIXED:secret.']\n"
    )
    config = ["--config", str(tmp_path / "pipeline.yml")]
    assert run(["pipeline", "recommend", "--dry-run", *config]) == ExitCode.OK
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
    assert "does not say where today's ACLs are: set `acls.source`" in capsys.readouterr().err
    assert run([*command, "--beyond-today"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[1:] == ["  within_today: false"]
