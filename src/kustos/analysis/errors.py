"""Errors of questions over whole ACL sets."""


class AnalysisError(ValueError):
    """The base of this package's errors; the text names the value and the remedy."""


class PolicyError(AnalysisError):
    """A policy that cannot be read: `file`, `line` (from 1), the wrong `value`, the `rule` that it breaks."""

    def __init__(self, file: str, line: int, value: str, rule: str) -> None:
        self.file = file
        self.line = line
        self.value = value
        self.rule = rule
        super().__init__(f"{file}:{line}: `{value}`: {rule}")
