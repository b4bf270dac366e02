"""The optional extras of an installation: their modules, and the error for a missing extra.

`pip install kustos` installs the dependencies of `kustos serve` and the commands. Code that needs more
imports it inside `needs_extra`, so the error message shows the command that installs it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

_ARROW: Final = ("numpy", "pyarrow")
_SPARK: Final = (
    "pyspark",
    "aiokafka",
    "deltalake",
    "pandas",
    "pydantic",
    "jinja2",
    "markupsafe",
    *_ARROW,
)

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "arrow": _ARROW,
        "spark": _SPARK,
        "connect": (*_SPARK, "grpc", "grpc_status", "google.rpc", "zstandard"),
        "gssapi": ("gssapi",),
        "mapping": ("re2",),
        "oauth": ("joserfc",),
        "sign": ("joserfc",),
        "zookeeper": ("kazoo", "puresasl"),
    }
)
"""The modules of each extra in `pyproject.toml`; `all` is all of them."""


class ExtraMissingError(ImportError):
    """A package of an extra is not installed; the text names it, and the command that installs it."""


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Context for imports of an extra's modules; raises `ExtraMissingError` if a module is not installed.

    `purpose` begins the message. Other import errors are not changed.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in {module.partition(".")[0] for module in EXTRAS[extra]}:
            raise
        raise ExtraMissingError(
            f"{purpose} needs `{missing}`, install it with `pip install 'kustos[{extra}]'`", name=missing
        ) from error
