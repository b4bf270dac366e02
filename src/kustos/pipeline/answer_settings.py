"""The sections of the configuration that choose how questions are answered: recommendations and anomalies."""

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.runtime import did_you_mean

if TYPE_CHECKING:
    from kustos.pipeline.anomalies import Suppression
    from kustos.pipeline.privilege import Legitimate, PrivilegeOptions

SUPPRESSIONS_MAX: Final = 1_000
"""Each is a condition of one plan."""


def without_bool(value: Any) -> Any:
    """Return the value; raise ValueError for true and false."""
    # YAML's `yes` would otherwise be the number 1
    if isinstance(value, bool):
        raise ValueError("takes a number")  # noqa: TRY004 - pydantic turns ValueError into its own
    return value


def resource_of(text: Any) -> ResourcePattern:
    """Return the pattern of `TYPE:NAME`, `TYPE:LITERAL:NAME` or `TYPE:PREFIXED:NAME`; raise ValueError."""
    kind, _, rest = str(text).strip().partition(":")
    how, colon, name = rest.partition(":")
    if not colon or how not in {"LITERAL", "PREFIXED"}:
        how, name = "LITERAL", rest
    resource_type = ResourceType.from_text(kind)
    if resource_type in {ResourceType.UNKNOWN, ResourceType.ANY} or not name:
        raise ValueError(f"is `{text}`, which is not a resource: use `TOPIC:name` or `TOPIC:PREFIXED:name`")
    return ResourcePattern(resource_type, name, PatternType[how])


def _checked_kind(kind: str) -> str:
    from kustos.pipeline.anomalies import KINDS

    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"use one of {', '.join(KINDS)}"
        raise ValueError(f"is `{kind}`, which is not a kind of anomaly; {hint}")
    return kind


Count = Annotated[int, BeforeValidator(without_bool)]
Number = Annotated[float, BeforeValidator(without_bool)]
Resource = Annotated[ResourcePattern, PlainValidator(resource_of)]


class Section(BaseModel):
    """A section: frozen, and no key but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class RecommendSettings(Section):
    """The options of `recommend`, with the names of `PrivilegeOptions` and `Legitimate`, which check them.

    A missing key has the default value there. `resources_excluded` are written `TOPIC:secret` or
    `TOPIC:PREFIXED:secret.`.
    """

    over_grant_weight: Number | None = None
    future_name_count: Number | None = None
    separators: str | None = None
    prefix_length_min: Count | None = None
    prefix_members_min: Count | None = None
    wildcard_share: Number | None = None
    wildcard_members_min: Count | None = None
    all_operations_min: Count | None = None
    hosts: Literal["any", "exact", "ranges"] | None = None
    hosts_max: Count | None = None
    range_hosts_min: Count | None = None
    range_bits_min_ipv4: Count | None = None
    range_bits_min_ipv6: Count | None = None
    principals_excluded: tuple[str, ...] | None = None
    resources_excluded: tuple[Resource, ...] | None = None
    uses_min: Count | None = None
    with_listing: bool | None = None
    keeps_hidden: bool | None = None
    with_super_users: bool | None = None
    coverage: Number | None = None
    within_today: bool = True

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if self.model_fields_set - {"within_today"}:
            self.options()
        return self

    def options(self, **others: Any) -> "tuple[PrivilegeOptions, Legitimate]":
        """Return the options that the file sets, with `others` of `Legitimate`.

        `null` means never for `wildcard_share` and `all_operations_min`, and the default for other keys. So
        does 0 for these two. Raises `PrivilegeOptionError`.
        """
        from dataclasses import fields

        from kustos.pipeline.privilege import HostChoice, Legitimate, PrivilegeOptions

        never = ("wildcard_share", "all_operations_min")
        stated = {name: getattr(self, name) for name in self.model_fields_set - {"within_today"}}
        stated |= {name: None for name in never if stated.get(name) == 0}
        chosen = {name: value for name, value in stated.items() if value is not None or name in never}
        if "hosts" in chosen:
            chosen["hosts"] = HostChoice(chosen["hosts"])
        names = {field.name for field in fields(PrivilegeOptions)}
        legitimate = {name: chosen.pop(name) for name in [*chosen] if name not in names}
        return PrivilegeOptions(**chosen), Legitimate(**legitimate | others)


class SuppressionSettings(Section):
    """Findings that are known until a day (UTC, itself included), and why.

    `kind`, `principal` (`User:pay-*` for all with this prefix) and `resource` (`TOPIC:secret` or
    `TOPIC:PREFIXED:secret.`) must all match, so far as they are set.
    """

    kind: Annotated[str, AfterValidator(_checked_kind)] | None = None
    principal: Annotated[str, Field(min_length=1)] | None = None
    resource: Resource | None = None
    until: date
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.kind is None and self.principal is None and self.resource is None:
            raise ValueError("a suppression names a `kind`, a `principal` or a `resource`")
        return self

    def suppression(self) -> "Suppression":
        """Return the rule as the detectors take it."""
        from kustos.pipeline.anomalies import Suppression

        until = datetime.combine(self.until + timedelta(days=1), time(), UTC)
        return Suppression(
            reason=self.reason,
            kind=self.kind,
            principal=self.principal,
            resource=self.resource,
            until=until,
        )


class AnomalySettings(Section):
    """Which findings of `anomalies` are known; the first suppression that matches gives its reason."""

    suppressions: Annotated[tuple[SuppressionSettings, ...], Field(max_length=SUPPRESSIONS_MAX)] = ()
