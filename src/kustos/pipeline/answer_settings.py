"""The sections of the configuration that choose how questions are answered: recommendations and anomalies."""

from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

SUPPRESSIONS_MAX: Final = 1_000
"""Each is a condition of one plan."""


def without_bool(value: Any) -> Any:
    """Return the value; raise ValueError for true and false."""
    # YAML's `yes` would otherwise be the number 1
    if isinstance(value, bool):
        raise ValueError("takes a number")  # noqa: TRY004 - pydantic turns ValueError into its own
    return value


Count = Annotated[int, BeforeValidator(without_bool)]
Number = Annotated[float, BeforeValidator(without_bool)]


class Section(BaseModel):
    """A section: frozen, and no key but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class RecommendSettings(Section):
    """The choices of `recommend`, under the names of `PrivilegeOptions` and `Legitimate`, which check them.

    A missing key takes the default there. `resources_excluded` are written `TOPIC:secret` or
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
    resources_excluded: tuple[str, ...] | None = None
    uses_min: Count | None = None
    with_listing: bool | None = None
    keeps_hidden: bool | None = None
    with_super_users: bool | None = None
    coverage: Number | None = None
    within_today: bool = True

    def stated(self) -> dict[str, Any]:
        """Return the keys that the file sets, `null` ones too, without `within_today`."""
        return self.model_dump(exclude_unset=True, exclude={"within_today"})


class SuppressionSettings(Section):
    """Findings that are known until a day (UTC, itself included), and why.

    `kind`, `principal` (`User:pay-*` for all with this prefix) and `resource` (`TOPIC:secret` or
    `TOPIC:PREFIXED:secret.`) must all match, so far as they are set.
    """

    kind: str | None = None
    principal: Annotated[str, Field(min_length=1)] | None = None
    resource: Annotated[str, Field(min_length=1)] | None = None
    until: date
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.kind is None and self.principal is None and self.resource is None:
            raise ValueError("a suppression names a `kind`, a `principal` or a `resource`")
        return self


class AnomalySettings(Section):
    """Which findings of `anomalies` are known; the first suppression that matches gives its reason."""

    suppressions: Annotated[tuple[SuppressionSettings, ...], Field(max_length=SUPPRESSIONS_MAX)] = ()
