"""`kustos decide`."""

from pathlib import Path
from typing import Annotated

import typer

from kustos.cli.acl_options import Form, SuperUsers
from kustos.cli.options import exit_code_if
from kustos.cli.requests import RecordFormat

EXAMPLES = """
kustos decide --acls acls.jsonl --requests requests.jsonl
kustos decide --acls acls.yaml --requests - \\
    --super-users User:admin < requests.jsonl
kustos decide --acls acls.txt --requests asked.csv \\
    --answers answered.parquet
"""

Acls = Annotated[
    str,
    typer.Option(
        "--acls",
        metavar="FILE",
        help="The ACLs: a file in any form, a metadata directory, `-` for standard input.",
        show_default=False,
    ),
]
Requests = Annotated[
    str,
    typer.Option(
        "--requests",
        metavar="FILE",
        help="What to decide: JSON lines, CSV or Parquet, `-` for standard input.",
        show_default=False,
    ),
]
Answers = Annotated[
    str, typer.Option("--answers", metavar="FILE", help="Where answers go, `-` for standard output.")
]
InputFormat = Annotated[
    RecordFormat | None,
    typer.Option("--input-format", help="How requests are written. [told from the name, else json-lines]"),
]
AnswerFormat = Annotated[
    RecordFormat | None,
    typer.Option("--output-format", help="How answers are written. [told from the name, else json-lines]"),
]
AllowEveryone = Annotated[
    bool,
    typer.Option(
        "--allow-if-no-acl-found",
        "--allow-everyone-if-no-acl-found",
        help="The cluster's allow.everyone.if.no.acl.found is true.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes for many JSON lines. [default: as many as cores]"
    ),
]
ExitCodeFlag = Annotated[bool, exit_code_if("any answer is not ALLOWED")]


def decide(
    acls: Acls,
    requests: Requests,
    answers: Answers = "-",
    input_format: InputFormat = None,
    output_format: AnswerFormat = None,
    form: Form = None,
    super_users: SuperUsers = "",
    allow_if_no_acl_found: AllowEveryone = False,
    workers: Workers = None,
    exit_code: ExitCodeFlag = False,
) -> int:
    """Decide many requests at once, each as a broker would.

    A request has `principal`, `host`, `operation`, `resource_type` (Kafka's names) and `resource_name`;
    null there (an empty cell in CSV) asks about any resource of the type. Each gets one answer, in order:
    `result` (ALLOWED, DENIED, ERROR) and the deciding `rule`. A request that is none gets an ERROR, which
    allows nothing, and the rest goes on. ACLs that are not wholly understood decide nothing.
    """
    from kustos.authorizer import parse_super_users
    from kustos.cli.deciding import Decider, load_authorizer, open_answers, open_requests
    from kustos.cli.deciding_workers import cores
    from kustos.cli.failures import ExitCode, usage_error

    if acls == requests == "-":
        raise usage_error("only one of ACLs and requests can come from standard input")
    if answers != "-" and Path(answers).resolve() in {Path(requests).resolve(), Path(acls).resolve()}:
        raise usage_error(f"the answers would overwrite `{answers}`, which is read, name another file")
    authorizer = load_authorizer(acls, form, parse_super_users(super_users), allow_if_no_acl_found)
    with open_requests(requests, input_format) as source, open_answers(answers, output_format) as writer:
        all_allowed = Decider(authorizer, workers or cores()).run(source, writer)
    return ExitCode.NO if exit_code and not all_allowed else ExitCode.OK
