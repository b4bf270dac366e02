"""How a command ends: exit codes, and the one shape of errors.

`{"error": {"code": ..., "message": ...}}` on standard error with `--output json`, one line of text else.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kustos.client import KafkaError


@unique
class ExitCode(IntEnum):
    """The exit codes that a program running `kustos` can distinguish; help and docs show their texts."""

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
    ExitCode.NOT_AUTHORIZED: "the cluster does not authorize you",
    ExitCode.NO: "the answer is no: denied, different, found, or broken",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
}


_NO_RANGES: Final = "CIDR-based ACL host patterns require"
"""The message of Kafka and kustos for an address range below metadata.version 4.4-IV1."""

_RANGES_REMEDY: Final = (
    "stop the node and run `kustos features upgrade --config kustos.properties --release-version 4.4-IV2`, "
    "or raise it while it runs by `--bootstrap-controller`, its admin listener, in place of `--config`"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command fails. `code` is for programs, upper case; Kafka's where it has one."""

    exit_code: ExitCode
    code: str
    message: str


class CommandError(Exception):
    """Ends a command; carries the error for the person or program."""

    def __init__(self, exit_code: ExitCode, code: str, message: str) -> None:
        super().__init__(message)
        self.failure: Final = Failure(exit_code, code, message)


def usage_error(message: str) -> CommandError:
    """Return the error for invalid arguments or input."""
    return CommandError(ExitCode.USAGE, "USAGE", message)


def failure_of(error: Exception) -> Failure | None:
    """Return what a known error means for the user at the command line; None for our own bugs."""
    from kustos import client
    from kustos.acl import AclValueError
    from kustos.acl.forms import AclFormatError

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
            return Failure(exit_code, code, str(error))
    failure = _core_failure(error)
    if failure is None and isinstance(error, OSError):
        from kustos.runtime import reason_of

        where = f"`{error.filename}`" if error.filename else "a file"
        return Failure(ExitCode.FAILED, "IO", f"cannot use {where}: {reason_of(error)}")
    return failure


def _core_failure(error: Exception) -> Failure | None:
    import sys

    # the code that raised it has imported the module: no need to load it here
    for module, root, code, exit_code in (
        ("kustos.extras", "ExtraMissingError", "EXTRA_MISSING", ExitCode.USAGE),
        ("kustos.metadata.errors", "TornTailError", "TORN_TAIL", ExitCode.FAILED),
        ("kustos.metadata.errors", "NoMetadataError", "METADATA", ExitCode.USAGE),
        ("kustos.metadata.errors", "MetadataError", "METADATA", ExitCode.FAILED),
        ("kustos.authorizer.spi.values", "AuthorizerError", "AUTHORIZER", ExitCode.FAILED),
        ("kustos.analysis.policy", "PolicyError", "POLICY", ExitCode.USAGE),
        ("kustos.analysis.kernel", "AnalysisError", "ANALYSIS", ExitCode.USAGE),
        ("kustos.signoff.errors", "SignoffError", "SIGNOFF", ExitCode.FAILED),
        ("kustos.pipeline.errors", "ConfigurationError", "SETTINGS", ExitCode.USAGE),
        ("kustos.pipeline.errors", "SparkMissingError", "SPARK_MISSING", ExitCode.USAGE),
        ("kustos.pipeline.errors", "AuditInputError", "AUDIT_INPUT", ExitCode.USAGE),
        ("kustos.pipeline.errors", "AclSetError", "ACL_FORMAT", ExitCode.USAGE),
        ("kustos.pipeline.errors", "PipelineError", "PIPELINE", ExitCode.FAILED),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(error, getattr(loaded, root)):
            return Failure(exit_code, code, str(error))
    return None


def kafka_error_text(error: Exception) -> str:
    """Return the line that reports a cluster's refusal, with a remedy if there is one."""
    from kustos.client import SECURITY_DISABLED, KafkaError

    if not isinstance(error, KafkaError):
        return str(error)
    if error.is_authorization_failure:
        # Kafka dumps its whole request object into the message
        return _refused_text(error)
    if error.message.startswith(_NO_RANGES):
        return f"the cluster answered `{error.name}` (`{error.message}`); {_RANGES_REMEDY}"
    detail = f" (`{error.message}`)" if error.message else ""
    if error.code == SECURITY_DISABLED:
        return (
            f"the cluster has no authorizer: it answered `{error.name}`{detail}, set `authorizer.class.name`"
        )
    return f"the cluster answered `{error.name}`{detail}"


def _refused_text(error: "KafkaError") -> str:
    """Return the refusal, with the command by which an administrator grants the right."""
    requester = error.requester
    if requester is None:
        return f"not authorized: the cluster answered `{error.name}`; log in as a principal that may do this"
    lacking = f"{requester.who}, without `{requester.operation.name}` on the cluster"
    refusal = f"not authorized: the cluster answered `{error.name}`; you are {lacking}"
    if requester.principal is None:
        return f"{refusal}; log in as a principal that has it"
    words = ["kustos", "acls", "add", "--bootstrap-server", requester.bootstrap_servers]
    words += ["--command-config", "admin.properties"] if requester.logs_in else []
    words += ["--cluster", "--operation", requester.operation.name, "--allow-principal", requester.principal]
    return f"{refusal}; log in as a principal that has it, or have it run `{shlex.join(words)}`"


def failure_of_items(doing: str, outcomes: "Sequence[KafkaError | None]") -> CommandError | None:
    """Return the error for a request with failed items, None if none failed."""
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
