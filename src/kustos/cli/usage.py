"""Messages about wrong arguments, in place of the texts of click and pydantic."""

import re
from collections.abc import Callable
from typing import Any, Final

from kustos.runtime import did_you_mean

_SPELLINGS: Final = (
    (
        re.compile(r"^no such command (`[^`]*`)\. Did you mean (`[^`]*`).*"),
        r"no such command \1, did you mean \2",
    ),
    (
        re.compile(r"^no such option: (\S+)(?: (?:\(Possible options: |Did you mean )(-[\w-]+).*)?$"),
        r"no such option `\1`, did you mean `\2`",
    ),
    (re.compile(r", did you mean ``$"), ""),
    (re.compile(r"^option (`[^`]*`) requires an argument$"), r"option \1 has no value, give one"),
    (re.compile(r"^option (`[^`]*`) does not take a value$"), r"option \1 takes no value, leave it out"),
    (
        re.compile(r"^got unexpected extra argument(?:s|\(s\))? \((.*)\)$"),
        r"`\1` is more than the command takes, leave it out",
    ),
)
"""The texts of click, in backticks already, and ours."""


def _limit(words: str, limit: str) -> Callable[[dict[str, Any]], str]:
    return lambda problem: f"`{problem['input']}` is {words.format(problem['ctx'][limit])}"


_PROBLEMS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "greater_than_equal": _limit("below {0}, use {0} or more", "ge"),
    "less_than_equal": _limit("above {0}, use {0} or less", "le"),
    "greater_than": _limit("not above {0}, use more", "gt"),
    "less_than": _limit("not below {0}, use less", "lt"),
    "int_parsing": lambda problem: f"`{problem['input']}` is not a whole number",
    "int_parsing_size": lambda problem: f"`{problem['input']}` is not a number of usable size",
    "float_parsing": lambda problem: f"`{problem['input']}` is not a number",
    "value_error": lambda problem: _choice(str(problem["ctx"]["error"])),
}
"""The errors of pydantic by their type."""


def _unusable(problem: dict[str, Any]) -> str:
    return f"`{problem['input']}` cannot be used here"


def usage_text(error: Exception) -> str:
    """Return what is wrong with the arguments, in lower case and with user input in backticks."""
    message: str = getattr(error, "format_message", lambda: str(error))().strip()
    message = (message[:1].lower() + message[1:]).rstrip(".?")
    errors: Any = getattr(error.__cause__, "errors", None)
    if errors is not None:
        # typer's text begins with the option; what follows is pydantic's
        what, _, _ = message.partition(": ")
        problem = errors()[0]
        words = _PROBLEMS.get(problem["type"], _unusable)
        message = f"{what}: {words(problem)}"
    message = " ".join(re.sub(r"'([^']*)'", r"`\1`", message).split())
    for theirs, ours in _SPELLINGS:
        message = theirs.sub(ours, message)
    return message


def _choice(text: str) -> str:
    """Return a message about a value outside its choices, with the most similar choice."""
    text = text.rstrip(".")
    value, *choices = re.findall(r"'([^']*)'", text) or [""]
    hint = did_you_mean(value, choices)
    return f"{text}; {hint}" if hint else text
