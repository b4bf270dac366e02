"""The reference page of the settings, made from their table: `python -m kustos.server.settings.page`."""

import sys
from pathlib import Path
from typing import Any, Final

from kustos.server.settings.kinds import Setting
from kustos.server.settings.table.node import SETTINGS

HEAD: Final = """\
# Configuration

<!-- made from the table in `kustos.server.settings.table.node`; do not edit -->

`kustos serve FILE` reads a Java properties file (UTF-8). Keys that Kafka has mean what they mean in Kafka;
`kustos.*` is what Kafka lacks. An unknown `kustos.*` key keeps the node from starting; any other unknown key
is ignored with a warning, so a file may serve a broker, too.

## Values that stand elsewhere

A value, or a part of one, may be a reference, in the form of Kafka's configuration providers. No
`config.providers` is needed. What a reference stands for is shown nowhere.

| Written | Stands for |
|---|---|
| `${env:NAME}` | the environment variable `NAME` |
| `${file:/path}` | what the file holds, without the line feed at its end |
| `${file:/path:key}` | the value of `key` in the properties file |

## Settings of one listener or mechanism

Where *for one* says so, a setting may be given for one listener as `listener.name.<listener>.<key>`, for one
SASL mechanism as `<mechanism>.<key>`, for both as `listener.name.<listener>.<mechanism>.<key>`. Listener and
mechanism stand in small letters, as in `listener.name.clients.scram-sha-256.connections.max.reauth.ms`. The
more particular key wins; between the two that name one of them, the mechanism's does.
"""


def configuration_page() -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    by_section: dict[str, list[Setting[Any]]] = {}
    for setting in SETTINGS:
        by_section.setdefault(setting.section, []).append(setting)
    for section, settings in by_section.items():
        parts.append(
            f"\n## {section}\n\n| Key | Values | Default | For one | Meaning |\n|---|---|---|---|---|\n"
        )
        parts.extend(_row(setting) for setting in settings)
    return "".join(parts)


def _row(setting: Setting[Any]) -> str:
    ones = [
        name
        for name, is_so in (("listener", setting.per_listener), ("mechanism", setting.per_mechanism))
        if is_so
    ]
    secret = " Secret: shown nowhere." if setting.secret else ""
    cells = (
        f"`{setting.name}`",
        setting.kind.takes,
        _default(setting),
        ", ".join(ones),
        setting.doc + secret,
    )
    return f"| {' | '.join(cells)} |\n"


def _default(setting: Setting[Any]) -> str:
    if setting.required:
        return "must be set"
    value = setting.default
    if value is None or value in ((), ""):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{','.join(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(configuration_page(), encoding="utf-8")
