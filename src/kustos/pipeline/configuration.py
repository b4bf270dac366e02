"""The pipeline's configuration: one small YAML file, checked whole before anything is read.

    version: 1
    tables:
      path: tables
    inputs:
      - files: /var/log/kafka
        time_zone: Europe/Berlin
      - topic: kustos-audit
        command_config: client.properties
        cluster: east
    acls:
      source: acls.yaml
      super_users: User:admin
    metadata: /var/lib/kustos/metadata
    review:
      dormant_days: 90
      teams:
        User:pay-*: payments
    anomalies:
      suppressions:
        - kind: SWEEP
          principal: User:pentest
          until: 2026-12-31
          reason: penetration test

Paths are relative to the file. It holds no passwords: a topic's `command_config` is a properties file
of Kafka's clients.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args
from zoneinfo import ZoneInfo

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from kustos.pipeline.answer_settings import AnomalySettings, RecommendSettings, Section, without_bool
from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.places import Place, StorePath, place_of
from kustos.runtime import TextFileError, did_you_mean, expanded, read_text_file

CONFIGURATION_BYTES_MAX: Final = 1_048_576
"""Longest file read: thousands of teams."""

INPUTS_MAX: Final = 1_000
"""Each input is a scan of its own in one plan."""


def _checked_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("is not a time zone, give an IANA name like `Europe/Berlin`") from None
    return name


def _checked_layout(pattern: str) -> str:
    from kustos.pipeline.lines.layouts import compiled

    try:
        return compiled(pattern).pattern
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


def _checked_cluster(name: str) -> str:
    from kustos.pipeline.lines.clusters import is_cluster_name

    if not is_cluster_name(name):
        raise ValueError("is not a name of a cluster, take up to 255 letters, digits and `._:+-`")
    return name


def _checked_id(text: str) -> str:
    return text and _checked_cluster(text)


def _resolved(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / expanded(path)


def _place(value: Any, info: ValidationInfo) -> Place:
    if not isinstance(value, str | Path):
        raise ValueError("takes a path, or an address like `s3://BUCKET/FOLDER`")  # noqa: TRY004 - as above
    place = place_of(str(value).strip())
    return _resolved(place, info) if isinstance(place, Path) else place


LocalPath = Annotated[Path, AfterValidator(_resolved)]
AnyPlace = Annotated[Path | StorePath, PlainValidator(_place)]
ClusterName = Annotated[str, AfterValidator(_checked_cluster)]
Days = Annotated[int, BeforeValidator(without_bool), Field(ge=1, le=36_500)]


class TableSettings(Section):
    """Where the tables are: a folder, or an address in an object store (`s3://BUCKET/FOLDER`).

    `checkpoints` is the folder for the names of streams, by default `_streams` in that of the tables; with
    tables in an object store it is a folder of the driver. `watermark_days`: events that come later are
    quarantined; None takes all. `retention_days`: how many days events and lines are kept;
    `rollup_retention_days`: the roll-up. None: for ever.
    """

    path: AnyPlace
    checkpoints: LocalPath | None = None
    keep_raw: bool = False
    watermark_days: Days | None = None
    retention_days: Days | None = None
    rollup_retention_days: Days | None = None

    @model_validator(mode="after")
    def _kept_long_enough(self) -> Self:
        if self.rollup_retention_days is not None and (
            self.retention_days is None or self.rollup_retention_days < self.retention_days
        ):
            raise ValueError("`rollup_retention_days` is at least `retention_days`, which must be set too")
        return self

    def folder_of_checkpoints(self) -> Path:
        """Return the folder for the names of streams; raise `ConfigurationError` if none is named."""
        if self.checkpoints is not None:
            return self.checkpoints
        if isinstance(self.path, StorePath):
            raise ConfigurationError(
                "streams into an object store need a folder for their names, set `tables.checkpoints`"
            )
        return self.path / "_streams"


class InputSettings(Section):
    """A folder of audit files, also in an object store (`s3://BUCKET/FOLDER`), or a topic.

    `source` names what wrote all files, such as a broker. `cluster` is whose all lines are: an event that
    names another cluster is quarantined. None: each event's own, the unnamed one if it names none.
    """

    files: AnyPlace | None = None
    cluster: ClusterName | None = None
    source: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    time_zone: Annotated[str, AfterValidator(_checked_time_zone)] = "UTC"
    layout: Annotated[str, AfterValidator(_checked_layout)] | None = None
    on_damaged_file: Literal["stop", "quarantine"] = "stop"
    on_unknown_format: Literal["stop", "quarantine"] = "stop"
    topic: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    command_config: LocalPath | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.files is None) == (self.topic is None):
            raise ValueError("an input has either `files` or `topic`")
        if self.topic is not None and self.source is not None:
            raise ValueError("`source` is for `files`; a topic has a name and an id of its own")
        if self.topic is not None and self.command_config is None:
            raise ValueError("a topic needs `command_config`, a properties file with `bootstrap.servers`")
        return self


class AclSettings(Section):
    """Today's ACLs: `source` in any form of `--acls`, such as a file or `kafka://HOST:PORT`.

    `command_config` are the client properties for a cluster. The other two are the brokers' settings.
    """

    source: Annotated[str, Field(min_length=1)]
    command_config: LocalPath | None = None
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False


class ReviewSettings(Section):
    """`teams` maps principals (`User:pay-*` for all with this prefix) to the team that answers for them."""

    dormant_days: Days = 90
    teams: Mapping[str, str] = Field(default_factory=dict)


class ExistingSettings(Section):
    """Files with the names that exist in the cluster, one name per line.

    `topics` and `groups` find ACLs for names that do not exist. `scram_users` are users that can log in.
    """

    topics: LocalPath | None = None
    groups: LocalPath | None = None
    scram_users: LocalPath | None = None


class SparkSettings(Section):
    """Which Spark: `master` as for spark-submit, or `remote` for Spark Connect (`sc://host:port`).

    `jars` is a folder of jars for Spark's class path; kustos itself needs none.
    """

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    remote: Annotated[str, Field(pattern=r"^sc://")] | None = None
    jars: LocalPath | None = None
    settings: Mapping[str, str] = Field(default_factory=dict)

    def all_settings(self) -> dict[str, str]:
        """Return the settings with the jars among them; raise `ConfigurationError` for a folder without."""
        if self.jars is None:
            return dict(self.settings)
        found = sorted(str(path) for path in self.jars.glob("*.jar"))
        if not found:
            raise ConfigurationError(f"`spark.jars` names `{self.jars}`, where no jars are: leave it out")
        return {"spark.jars": ",".join(found), **self.settings}


class ClusterSettings(Section):
    """What differs from cluster to cluster, in place of the same keys of the file.

    `ids` are what events and older rows name the cluster by: its id, or the empty text for those that name
    none.
    """

    ids: tuple[Annotated[str, AfterValidator(_checked_id)], ...] = ()
    acls: AclSettings | None = None
    metadata: LocalPath | None = None
    duties: LocalPath | None = None
    policy: LocalPath | None = None
    existing: ExistingSettings | None = None


class PipelineConfiguration(Section):
    """The contents of a configuration file.

    `cluster` is the default cluster of commands, and the cluster of `acls`, `metadata`, `duties`, `policy`
    and `existing`. Without it, these apply to every cluster that has none of its own.
    """

    version: Annotated[Literal[1], BeforeValidator(without_bool)]
    tables: TableSettings
    inputs: Annotated[tuple[InputSettings, ...], Field(max_length=INPUTS_MAX)] = ()
    cluster: ClusterName | None = None
    clusters: Mapping[ClusterName, ClusterSettings] = Field(default_factory=dict)
    acls: AclSettings | None = None
    metadata: LocalPath | None = None
    duties: LocalPath | None = None
    policy: LocalPath | None = None
    existing: ExistingSettings | None = None
    review: ReviewSettings = ReviewSettings()
    recommend: RecommendSettings = RecommendSettings()
    anomalies: AnomalySettings = AnomalySettings()
    spark: SparkSettings = SparkSettings()

    @model_validator(mode="after")
    def _ids_of_one_cluster(self) -> Self:
        names = [each for name, one in self.clusters.items() for each in {name, *one.ids}]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"`{repeated}` is named for two clusters")
        return self

    @property
    def cluster_ids(self) -> dict[str, tuple[str, ...]]:
        """By the name of a cluster what rows also name it by."""
        return {name: one.ids for name, one in self.clusters.items()}

    def of_cluster(self, name: str) -> Self:
        """Return the configuration for questions about this cluster."""
        own = self.clusters.get(name, ClusterSettings())
        keys = ("acls", "metadata", "duties", "policy", "existing")
        is_other = self.cluster is not None and self.cluster != name
        stated = dict.fromkeys(keys) if is_other else {}
        stated |= {key: getattr(own, key) for key in keys if getattr(own, key) is not None}
        return self.model_copy(update=stated)


def read_configuration(path: Path) -> PipelineConfiguration:
    """Return the configuration of a file; raise `ConfigurationError` with line, key and what to do."""
    try:
        text = read_text_file(path, CONFIGURATION_BYTES_MAX, "configuration")
    except TextFileError as error:
        raise ConfigurationError(str(error)) from error
    return parse_configuration(text, path)


def parse_configuration(text: str, path: Path) -> PipelineConfiguration:
    """Return the configuration in a text; messages name `path`, and relative paths start at its folder."""
    root, values = _loaded(text, path)
    repeated = next(_repeated_keys(root, set()), None)
    if repeated is not None:
        line = repeated.start_mark.line + 1
        raise ConfigurationError(f"{path}, line {line}: `{repeated.value}` is set twice")
    try:
        return PipelineConfiguration.model_validate(
            values if values is not None else {}, context={"folder": path.absolute().parent}
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigurationError(_sentence(path, root, first)) from None


def _loaded(text: str, path: Path) -> tuple[yaml.Node | None, Any]:
    """Return the nodes of a text, with their lines, and its values."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise ConfigurationError(f"{path}, line {line}: this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a date that does not exist
        raise ConfigurationError(f"{path}: this is not YAML: {str(error).splitlines()[0]}") from None


def _repeated_keys(node: yaml.Node | None, visited: set[int]) -> Iterator[yaml.Node]:
    """Yield keys that a mapping has twice: YAML would silently take the last one.

    Each node is visited once: by aliases a node may hold another one many times, or itself.
    """
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if str(key.value) in seen:
                yield key
            seen.add(str(key.value))
            yield from _repeated_keys(value, visited)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item, visited)


_SUBJECT: Final = re.compile("^(Value error,|Input|String|Tuple|List|Dictionary) ")
"""What pydantic's messages begin with before their verb; the sentence names the key instead."""

_KEY_NOT_TEXT: Final = "is a key that is not a text, put it in quotes"

_OF_KEY: Final = "[key]"
"""The last part of pydantic's place for a key of a mapping that is not valid."""


def _sentence(path: Path, root: yaml.Node | None, error: Mapping[str, Any]) -> str:
    place = tuple(part for part in error["loc"] if part != _OF_KEY)
    problem = _SUBJECT.sub("", str(error["msg"]))
    if (option := getattr(error.get("ctx", {}).get("error"), "option", None)) is not None:
        place, problem = (*place, option), problem.removeprefix(f"`{option}` ")
    match error["type"]:
        case "invalid_key":
            problem = _KEY_NOT_TEXT
        case "string_type" if _OF_KEY in error["loc"]:
            problem = _KEY_NOT_TEXT
        case "missing":
            problem = "is missing"
        case "extra_forbidden":
            problem = _with_hint("is not a key of the configuration", place[-1], _keys_at(place))
        case "model_type":
            problem = "takes keys with values, like `path: tables`"
        case "literal_error":
            expected = error["ctx"]["expected"].replace("'", "`")
            choices = re.findall("`([^`]*)`", expected)
            problem = _with_hint(f"is `{error['input']}`, use {expected}", error["input"], choices)
    name = ".".join(str(part) for part in place)
    where = f"{path}, line {_line_of(root, place)}"
    return f"{where}: `{name}` {problem}" if name else f"{where}: {problem}"


def _with_hint(problem: str, name: Any, known: Iterable[str]) -> str:
    """Return the problem with the most similar known name, if there is one."""
    hint = did_you_mean(str(name), known)
    return f"{problem}, {hint}" if hint else problem


def _keys_at(place: tuple[str | int, ...]) -> Iterable[str]:
    """Return the keys of the section that contains this place."""
    section: type[Section] = PipelineConfiguration
    for part in place[:-1]:
        field = section.model_fields.get(str(part))
        if field is not None:  # else the index of a list or the key of a mapping
            section = next(_sections_of(field.annotation), section)
    return section.model_fields


def _sections_of(hint: Any) -> Iterator[type[Section]]:
    """Yield the sections in a type hint."""
    if isinstance(hint, type) and issubclass(hint, Section):
        yield hint
    for inner in get_args(hint):
        yield from _sections_of(inner)


def _line_of(node: yaml.Node | None, place: tuple[str | int, ...]) -> int:
    """Return the line of the innermost node on the way to a place that exists."""
    if node is None:
        return 1
    if place and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(place[0]):
                return _line_of(value, place[1:]) if place[1:] else int(key.start_mark.line) + 1
    if place and isinstance(node, yaml.SequenceNode) and isinstance(place[0], int):
        return _line_of(node.value[place[0]], place[1:])
    return int(node.start_mark.line) + 1
