"""`kustos decide`."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.acl_options import (
    AclsFile,
    AllowEveryone,
    At,
    Form,
    MetadataDirectory,
    NodeConfig,
    SuperUsers,
)
from kustos.cli.options import CommandConfig, IgnoreTornTail, OptionalBootstrapServer, exit_code_if
from kustos.cli.requests import AnswerFormat, RecordFormat

EXAMPLES = """
kustos decide --acls acls.jsonl --requests requests.jsonl
kustos decide --acls acls.yaml --requests - \\
    --super-users User:admin < requests.jsonl
kustos decide --bootstrap-server node:9092 \\
    --command-config admin.properties --requests requests.csv \\
    --answers answered.parquet
"""

Requests = Annotated[
    str,
    typer.Option(
        "--requests",
        metavar="FILE",
        help="The requests: JSON lines, CSV or Parquet, `-` for standard input.",
        show_default=False,
    ),
]
Answers = Annotated[
    str, typer.Option("--answers", metavar="FILE", help="The file for the answers, `-` for standard output.")
]
InputFormat = Annotated[
    RecordFormat | None,
    typer.Option("--input-format", help="The format of the requests. [from the name, else json-lines]"),
]
AnswerOutput = Annotated[
    AnswerFormat | None,
    typer.Option("--output", "-o", help="The format of the answers. [from the name, else json-lines]"),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes for many JSON lines. [default: as many as cores]"
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("any answer is not ALLOWED")]


def decide(
    requests: Requests,
    answers: Answers = "-",
    input_format: InputFormat = None,
    acls: AclsFile = None,
    form: Form = None,
    bootstrap_server: OptionalBootstrapServer = None,
    metadata_dir: MetadataDirectory = None,
    at: At = None,
    config: NodeConfig = None,
    super_users: SuperUsers = None,
    allow_everyone_if_no_acl_found: AllowEveryone = None,
    workers: Workers = None,
    exit_code: ExitCodeFlag = False,
    command_config: CommandConfig = None,
    ignore_torn_tail: IgnoreTornTail = False,
    output: AnswerOutput = None,
) -> int:
    """Decide many requests at once, each as a broker would.

    A request has `principal`, `host`, `operation`, `resource_type` (Kafka's names) and `resource_name`;
    null there (an empty cell in CSV) means any resource of the type. Each gets one answer, in order:
    `result` (ALLOWED, DENIED, ERROR) and the deciding `rule`. An invalid request gets an ERROR, which allows
    nothing, and the rest goes on; with no valid request at all the exit code is 2. If any ACL cannot be
    understood, nothing is decided. The ACLs and settings of a running cluster are read once, before the
    first request.
    """
    from kustos.cli.acl_locations import AclSource, called_name
    from kustos.cli.broker_settings import SettingOptions
    from kustos.cli.decision_workers import cores
    from kustos.cli.decisions import RequestDecider, load_authorizer, open_answers, open_requests
    from kustos.cli.failures import ExitCode, usage_error

    if acls == requests == "-":
        raise usage_error("only one of ACLs and requests can come from standard input")
    read = {Path(name).resolve() for name in (requests, acls) if name is not None}
    if answers != "-" and Path(answers).resolve() in read:
        raise usage_error(f"the answers would overwrite `{answers}`, which is read, name another file")
    source = AclSource(
        acls=acls,
        form=form,
        metadata_dir=metadata_dir,
        at=at,
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        ignore_torn_tail=ignore_torn_tail,
        settings=SettingOptions(super_users, allow_everyone_if_no_acl_found, config),
    )
    authorizer = load_authorizer(source)
    with open_requests(requests, input_format) as request_source, open_answers(answers, output) as writer:
        tally = RequestDecider(authorizer, workers or cores()).run(request_source, writer)
    if exit_code and not tally.all_allowed:
        return ExitCode.NO
    if tally.first_reason and not tally.any_valid:
        raise usage_error(f"`{called_name(requests)}` has no valid request: {tally.first_reason}")
    return ExitCode.OK
