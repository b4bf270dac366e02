"""The optional parts of an installation: what each extra brings, and the error where one is missing.

`pip install kustos` brings what `kustos serve` and the commands need. Whatever needs more imports it inside
`needs_extra`, so that everybody who lacks it reads the one line that installs it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

_ARROW: Final = ("numpy", "pyarrow")
_SPARK: Final = (
    "pyspark",
    "py4j",
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
"""The modules that each extra of `pyproject.toml` brings; `all` is all of them."""


class ExtraMissingError(ImportError):
    """A package of an extra is not installed; the text says which one, and the line that installs it."""


@contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """Import what an extra brings in here; raise `ExtraMissingError` for what of it is not installed.

    `purpose` begins the message. An import that fails for any other reason raises as it would outside.
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
