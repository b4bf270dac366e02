"""The reference page of the settings, generated from their declarations."""

from typing import Any, Final, get_args

from kustos.server.settings.table import SETTINGS
from kustos.settings import Section, Setting

HEAD: Final = """\
# Configuration

<!-- generated from `kustos.server.settings`; do not edit -->

`kustos serve FILE` reads a Java properties file (UTF-8). Kafka's keys have Kafka's meaning; `kustos.*` are
settings that Kafka lacks. With an unknown `kustos.*` key the node does not start; it ignores any other
unknown key with a warning, so a broker can use the same file. The column *since* has the first release with
the key.

## Values kept elsewhere

A value, or a part of one, may be a reference, in the form of Kafka's configuration providers. No
`config.providers` is needed. kustos never shows the value of a reference.

| Reference | Value |
|---|---|
| `${env:NAME}` | the environment variable `NAME` |
| `${file:/path}` | the content of the file, without the line feed at its end |
| `${file:/path:key}` | the value of `key` in the properties file |

## Settings of one listener or mechanism

The column *for one* lists the settings that can be set for one listener as `listener.name.<listener>.<key>`,
for one SASL mechanism as `<mechanism>.<key>`, or for both as `listener.name.<listener>.<mechanism>.<key>`.
Write listener and mechanism in lower case, as in
`listener.name.clients.scram-sha-256.connections.max.reauth.ms`. The more specific key takes
precedence; the key of a mechanism overrides the key of a listener.

## New values without a restart

The column *new value by* says how a changed value takes effect. On `SIGHUP` the node, with all its worker
processes, reads the file again. If the file has an error, nothing changes, and one line of the log reports
it. Otherwise the log names the changed keys, a warning names those that need a restart, and an audit event
names those that are in force. Values never appear there.

- A lower limit refuses new connections. Open connections stay.
- New users of `PLAIN` and new passwords count from the next login on. Existing sessions stay until the
  session ends (`connections.max.reauth.ms`).
- A custom authorizer defines which of its settings may change ([how](../how-to/custom-authorizer.md)).
  `PLAIN` with a custom callback handler needs a restart.
"""


TABLE_HEAD: Final = """\
| Key | Values | Default | For one | New value by | Since | Meaning |
|---|---|---|---|---|---|---|
"""


def configuration_page() -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    for section in get_args(Section):
        parts.append(f"\n## {section}\n\n{TABLE_HEAD}")
        parts.extend(_row(setting) for setting in SETTINGS if setting.section == section)
    return "".join(parts)


def _row(setting: Setting[Any]) -> str:
    secret = " Secret: never shown." if setting.secret else ""
    cells = (
        f"`{setting.name}`",
        setting.kind.takes,
        _default(setting),
        setting.scope.value,
        setting.takes_effect.value,
        setting.since,
        setting.doc + secret,
    )
    return f"| {' | '.join(cells)} |\n"


def _default(setting: Setting[Any]) -> str:
    if setting.required:
        return "must be set"
    return f"`{setting.default_text}`" if setting.default_text else "none"
