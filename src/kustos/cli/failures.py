"""How a command ends: exit codes, and the one shape of errors.

`{"error": {"code": ..., "message": ...}}` on standard error with `--output json`, one line of text else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kustos.client.errors import KafkaError


@unique
class ExitCode(IntEnum):
    """What a program that runs `kustos` can tell apart; the text is what help and docs say of it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_AUTHORIZED = 4
    NO = 5
    INTERRUPTED = 130


EXIT_CODE_MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the cluster refused, or the operation failed",
    ExitCode.USAGE: "wrong arguments, settings or input files",
    ExitCode.UNREACHABLE: "cannot connect or cannot log in",
    ExitCode.NOT_AUTHORIZED: "the cluster says that you may not do this",
    ExitCode.NO: "the answer is no: denied, different, found, or broken",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
}


_DENIED: Final = re.compile(
    r"file '(?P<quoted>[^'\n]+)'\. Detail: \[errno 13\]|(?P<bare>/[^\n]*?) \(Permission denied\)"
)
"""Of a missing permission: what Arrow says in a worker of Python, and what Java's streams say."""

_CLOSED_HINT: Final = "; if its listener asks for a login or TLS, say so in `--command-config`"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command ends without success. `code` is for programs, upper case; Kafka's where it has one."""

    exit_code: ExitCode
    code: str
    message: str


class CommandError(Exception):
    """Ends a command; carries what the person or program is told."""

    def __init__(self, exit_code: ExitCode, code: str, message: str) -> None:
        super().__init__(message)
        self.failure: Final = Failure(exit_code, code, message)


def usage_error(message: str) -> CommandError:
    """Return the error for arguments or input that mean nothing."""
    return CommandError(ExitCode.USAGE, "USAGE", message)


def failure_of(error: Exception) -> Failure | None:
    """Return what a known error means to the person at the command line; None for our own bugs."""
    from kustos.acl import AclValueError
    from kustos.acl.forms import AclFormatError
    from kustos.client import errors as client

    if isinstance(error, CommandError):
        return error.failure
    if isinstance(error, client.KafkaError):
        refused = error.is_authorization_failure
        exit_code = ExitCode.NOT_AUTHORIZED if refused else ExitCode.FAILED
        return Failure(exit_code, error.name, kafka_error_text(error))
    kinds: tuple[tuple[type[Exception], ExitCode, str], ...] = (
        (client.SettingsError, ExitCode.USAGE, "SETTINGS"),
        (AclFormatError, ExitCode.USAGE, "ACL_FORMAT"),
        (AclValueError, ExitCode.USAGE, "INVALID_VALUE"),
        (client.AuthenticationFailedError, ExitCode.UNREACHABLE, "AUTHENTICATION_FAILED"),
        (client.RequestTimedOutError, ExitCode.UNREACHABLE, "REQUEST_TIMED_OUT"),
        (client.UnsupportedVersionError, ExitCode.FAILED, "UNSUPPORTED_VERSION"),
        (client.CannotConnectError, ExitCode.UNREACHABLE, "CANNOT_CONNECT"),
        (client.ClientError, ExitCode.UNREACHABLE, "CONNECTION_CLOSED"),
    )
    for kind, exit_code, code in kinds:
        if isinstance(error, kind):
            hint = _CLOSED_HINT if type(error) is client.ConnectionClosedError else ""
            return Failure(exit_code, code, f"{error}{hint}")
    failure = _core_failure(error)
    if failure is None and isinstance(error, OSError):
        from kustos.runtime import reason_of

        where = f"`{error.filename}`" if error.filename else "a file"
        return Failure(ExitCode.FAILED, "IO", f"cannot use {where}: {reason_of(error)}")
    return failure


def _core_failure(error: Exception) -> Failure | None:
    import sys

    # whoever raised it has imported it: no need to load the room to recognise it
    for module, root, code, exit_code in (
        ("kustos.metadata.errors", "MetadataError", "METADATA", ExitCode.FAILED),
        ("kustos.authorizer.spi", "AuthorizerError", "AUTHORIZER", ExitCode.FAILED),
        ("kustos.analysis.errors", "PolicyError", "POLICY", ExitCode.USAGE),
        ("kustos.analysis.errors", "AnalysisError", "ANALYSIS", ExitCode.USAGE),
        ("kustos.pipeline.errors", "ConfigurationError", "SETTINGS", ExitCode.USAGE),
        ("kustos.pipeline.errors", "SparkMissingError", "SPARK_MISSING", ExitCode.USAGE),
        ("kustos.pipeline.errors", "AuditInputError", "AUDIT_INPUT", ExitCode.USAGE),
        ("kustos.pipeline.errors", "AclSetError", "ACL_FORMAT", ExitCode.USAGE),
        ("kustos.pipeline.errors", "PipelineError", "PIPELINE", ExitCode.FAILED),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(error, getattr(loaded, root)):
            return Failure(exit_code, code, str(error))
    return _denied_to_spark(error)


def _denied_to_spark(error: Exception) -> Failure | None:
    """Return what is told of a file that Spark's processes may not use, which only their texts say."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return None
    found = _DENIED.search(str(error))
    if found is None:
        return None
    path = found["quoted"] or found["bare"]
    return Failure(ExitCode.FAILED, "IO", f"cannot use `{path}`: permission denied, check its permissions")


def kafka_error_text(error: Exception) -> str:
    """Return the line that tells of a cluster's refusal, with a remedy where there is one."""
    from kustos.client.errors import SECURITY_DISABLED, KafkaError

    if not isinstance(error, KafkaError):
        return str(error)
    if error.is_authorization_failure:
        # Kafka dumps its whole request object into this text; only what it needs is of use
        needed = re.search(r"needs (\w+) permission", error.message)
        what = f", you need `{needed[1]}` there" if needed else ""
        return f"not authorized: the cluster answered `{error.name}`{what}; ask as a principal that may"
    said = f" (`{error.message}`)" if error.message else ""
    if error.code == SECURITY_DISABLED:
        return f"the cluster has no authorizer: it answered `{error.name}`{said}, set `authorizer.class.name`"
    return f"the cluster answered `{error.name}`{said}"


def failure_of_items(doing: str, outcomes: "Sequence[KafkaError | None]") -> CommandError | None:
    """Return the error for a request some of whose items failed, None if none did."""
    errors = [error for error in outcomes if error is not None]
    if not errors:
        return None
    first = errors[0]
    refused = any(error.is_authorization_failure for error in errors)
    counted = f"{doing} failed for {len(errors)} of {len(outcomes)}: " if len(outcomes) > 1 else ""
    return CommandError(
        ExitCode.NOT_AUTHORIZED if refused else ExitCode.FAILED,
        first.name,
        counted + kafka_error_text(first),
    )
