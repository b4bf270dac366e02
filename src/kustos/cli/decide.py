"""`kustos decide`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.acl_options import with_acl_source
from kustos.cli.options import exit_code_if
from kustos.cli.requests import AnswerFormat, RecordFormat

if TYPE_CHECKING:
    from kustos.cli.acl_source import AclSource

EXAMPLES = """
kustos decide --acls acls.jsonl --requests requests.jsonl
kustos decide --acls acls.yaml --requests - \\
    --super-users User:admin < requests.jsonl
kustos decide --acls kafka://node:9092 \\
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


@with_acl_source(before="workers")
def decide(
    requests: Requests,
    source: "AclSource",
    answers: Answers = "-",
    input_format: InputFormat = None,
    workers: Workers = None,
    exit_code: ExitCodeFlag = False,
    output: AnswerOutput = None,
) -> int:
    """Decide many requests at once, each as a broker would.

    A request has `principal`, `host`, `operation`, `resource_type` (Kafka's names) and `resource_name`;
    null there (an empty cell in CSV) means any resource of the type. Each gets one answer, in order:
    `result` (ALLOWED, DENIED, ERROR) and the deciding `rule`. An invalid request gets an ERROR, which allows
    nothing, and the others are decided; with no valid request at all the exit code is 2. If any ACL is
    invalid, nothing is decided. The ACLs and settings of a running cluster are read once, before the
    first request.
    """
    from kustos.cli.decision_workers import cores
    from kustos.cli.decisions import RequestDecider, load_authorizer, open_answers, open_requests
    from kustos.cli.failures import ExitCode, usage_error
    from kustos.cli.text_files import called_name

    if source.is_standard_input and requests == "-":
        raise usage_error("only one of ACLs and requests can come from standard input")
    read = {Path(name).resolve() for name in (requests, source.path) if name is not None}
    if answers != "-" and Path(answers).resolve() in read:
        raise usage_error(f"the answers would overwrite `{answers}`, which is read, name another file")
    authorizer = load_authorizer(source)
    with open_requests(requests, input_format) as request_source, open_answers(answers, output) as writer:
        tally = RequestDecider(authorizer, workers or cores()).run(request_source, writer)
    if exit_code and not tally.all_allowed:
        return ExitCode.NO
    if tally.first_reason and not tally.any_valid:
        raise usage_error(f"`{called_name(requests)}` has no valid request: {tally.first_reason}")
    return ExitCode.OK
