"""The reference page of the command line, generated from the commands themselves.

`python -m kustos.cli.reference > docs/reference/cli.md`; a test compares the page with the code.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer

from kustos.cli.access import WHAT, WHO
from kustos.cli.acls.output import ACLS
from kustos.cli.app import app
from kustos.cli.chooser import chooser_page
from kustos.cli.differences import CHANGES
from kustos.cli.failures import EXIT_CODE_MEANINGS
from kustos.cli.features import FEATURES
from kustos.cli.findings import FINDINGS
from kustos.cli.legacy_acls import STATEMENTS
from kustos.cli.metadata.dump import record_columns
from kustos.cli.metadata.history import event_columns
from kustos.cli.minimize import edit_columns
from kustos.cli.output import Columns, OutputFormat
from kustos.cli.pipeline.flows import path_columns
from kustos.cli.pipeline.known_anomalies import anomaly_columns
from kustos.cli.pipeline.replay import flip_columns
from kustos.cli.trial import difference_columns
from kustos.cli.users import USERS
from kustos.cli.verdicts import VERDICTS

_OPENING = """# The `kustos` command

*Made from the commands by `python -m kustos.cli.reference`; change the code, not this page.*

`-o/--output` sets the output format, and has the same meaning everywhere: `table` for people,
`wide` with more columns, `csv`, `spreadsheet`, `name`, one document in `json` or `yaml`. A command without
rows supports `table`, `json` and `yaml`; see [output formats](../how-to/output.md). `--out` names a file.
Errors go to standard error: a line that begins with `error:`, or with `--output json` and `yaml`

```json
{"error": {"code": "CLUSTER_AUTHORIZATION_FAILED", "message": "..."}}
```

where `code` is Kafka's name of the error if the cluster answered one, else one of `USAGE`, `SETTINGS`,
`INVALID_VALUE`, `CANNOT_CONNECT`, `CONNECTION_CLOSED`, `REQUEST_TIMED_OUT`, `AUTHENTICATION_FAILED`,
`UNSUPPORTED_VERSION`, `ACL_FORMAT`, `METADATA`, `AUTHORIZER`, `POLICY`, `ANALYSIS`, `IO`,
`DECLINED`, `EXTRA_MISSING`, `INTERRUPTED`, of `pipeline` `SPARK_MISSING`, `AUDIT_INPUT`, `PIPELINE`, or of
`migrate` `REFUSED`, `LOCKED`, `NO_KAFKA`, `NO_AUTH`, `TOO_LARGE`,
`ZOOKEEPER`. Where some items of a request failed and others took effect, the document lists
what took effect and the error says how many failed.

`--command-config` takes the properties file of Kafka's tools: `security.protocol`, `sasl.mechanism`
(PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, [OAUTHBEARER](../how-to/bearer-tokens.md),
[GSSAPI](../how-to/kerberos.md#tickets-for-kustos-itself)) with
`sasl.jaas.config`, the keys of TLS (`ssl.truststore.*` and `ssl.keystore.*` in JKS, PKCS12 or PEM,
`ssl.key.password`, `ssl.endpoint.identification.algorithm`,
`ssl.enabled.protocols`, `ssl.protocol`, `ssl.cipher.suites`), `request.timeout.ms`,
`socket.connection.setup.timeout.ms`, `client.id`. Other keys are ignored, as Kafka ignores them, but a key of
librdkafka or Spring is refused while Kafka's own key is unset.

`acls` and `kafka-acls` create, remove and list the same ACLs for the same arguments, with two exceptions:
`acls remove` refuses `--operation`, `--allow-host` and `--deny-host` without a principal, for which Kafka's
tool removes every ACL of the resource; and `acls add` refuses a host such as `10.0.0.0/33`, which looks like
a range but matches no client.

Passwords are never arguments: they come from a prompt, a file or an environment variable.
"""


DOCUMENTS: Final[dict[str, str]] = {
    "acls list": "acls",
    "acls add": "added existing",
    "acls convert": "target form acls",
    "explain": "principal groups host operation resource_type resource_name pattern_type likely_prefix "
    "result rule parts matching overruled overruled_by unmatched change no_change settings",
    "who-can": "operation resource_type resource_name pattern_type grants cut settings",
    "what-can": "principal grants settings",
    "blast-radius": "principal everything conditional identities settings",
    "diff": "headline same changes cut acls settings",
    "lint": "source acls counts findings settings",
    "verify": "holds statements settings",
    "migrate": "source target applied complete acls users tokens refused left",
    "metadata dump": "records",
    "minimize": "given left removed added target settings",
}
"""The top-level keys of the `--output json` document, for commands that answer questions."""

ROWS: Final[dict[str, Columns[Any]]] = {
    "acls list": ACLS,
    "acls add": ACLS,
    "acls remove": ACLS,
    "diff": CHANGES,
    "features": FEATURES,
    "legacy": STATEMENTS,
    "lint": FINDINGS,
    "metadata dump": record_columns(),
    "metadata history": event_columns(with_audit=True),
    "minimize": edit_columns(),
    "pipeline anomalies acknowledge": anomaly_columns(),
    "pipeline anomalies find": anomaly_columns(),
    "pipeline anomalies list": anomaly_columns(),
    "pipeline flows": path_columns(),
    "pipeline replay": flip_columns(),
    "trial": difference_columns(),
    "users list": USERS,
    "verify": VERDICTS,
    "what-can": WHAT,
    "who-can": WHO,
}
"""The columns of every command that prints rows."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the tree; `path` is for example `acls add`."""

    path: str
    function: Callable[..., Any]
    examples: tuple[str, ...]


def commands(tree: typer.Typer = app, path: str = "") -> Iterator[Command]:
    """Yield every command except hidden aliases, groups after their siblings."""
    for command in tree.registered_commands:
        if command.hidden:
            continue
        if command.name is None or command.callback is None:
            raise ValueError(f"a command in `kustos {path}` was not added by `register`")
        examples = tuple(line.removeprefix("  ") for line in (command.epilog or "").split("\n")[2:])
        yield Command(f"{path} {command.name}".strip(), command.callback, examples)
    for group in tree.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance, f"{path} {group.name}".strip())


def page() -> str:
    """Return the whole page as Markdown."""
    codes = ["## Exit codes", "", "| code | meaning |", "|---|---|"]
    codes += [f"| {code:d} | {meaning} |" for code, meaning in EXIT_CODE_MEANINGS.items()]
    sections = [_OPENING, "\n".join(chooser_page()), "\n".join(codes) + "\n"]
    ordered = sorted(commands(), key=lambda command: command.path)
    sections += ["\n".join(_section(command)) + "\n" for command in ordered]
    return "\n".join(sections)


def _section(command: Command) -> list[str]:
    lines = [f"## kustos {command.path}", ""]
    for paragraph in (inspect.getdoc(command.function) or "").split("\n\n"):
        lines += [" ".join(paragraph.split()), ""]
    hints = get_type_hints(command.function, include_extras=True)
    rows = [
        _row(parameter, hints[parameter.name])
        for parameter in inspect.signature(command.function).parameters.values()
        if get_origin(hints[parameter.name]) is Annotated and not get_args(hints[parameter.name])[1].hidden
    ]
    if rows:
        lines += ["| option | takes | meaning |", "|---|---|---|", *rows, ""]
    if command.path in DOCUMENTS:
        keys = ", ".join(f"`{key}`" for key in DOCUMENTS[command.path].split())
        lines += [f"With `--output json` or `yaml`: {keys}.", ""]
    if command.path in ROWS:
        columns = ROWS[command.path]
        keys = ", ".join(f"`{column.key}`" for column in columns.of(OutputFormat.CSV))
        lines += [f"With `--output csv` or `spreadsheet`: {keys}. With `--output name`: {columns.named}.", ""]
    return [*lines, "```console", *command.examples, "```"]


def _row(parameter: inspect.Parameter, hint: Any) -> str:
    kind, info = get_args(hint)[:2]
    arms = (
        [arm for arm in get_args(kind) if arm is not type(None)] if get_origin(kind) is UnionType else [kind]
    )
    is_list = get_origin(arms[0]) is list
    declared = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    # no explicit name: numbers are `N`, arguments have their names from the code
    metavar = info.metavar or ("N" if declared else parameter.name.upper())
    names = ", ".join(f"`{name}`" for name in declared) or f"`{metavar}`"
    values = [] if arms[0] is bool or not declared else metavar.split("|")
    takes = ", ".join(f"`{value}`" for value in values)
    if isinstance(arms[0], type) and issubclass(arms[0], Enum) and not info.metavar:
        takes = ", ".join(f"`{member.value}`" for member in arms[0])
    notes = []
    if parameter.default is inspect.Parameter.empty:
        notes.append("required")
    elif parameter.default not in (None, False, ""):
        notes.append(f"default `{getattr(parameter.default, 'value', parameter.default)}`")
    if is_list and declared:
        notes.append("may be repeated")
    meaning = " ".join([info.help, f"*({', '.join(notes)})*"] if notes else [info.help])
    return f"| {names} | {takes} | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
