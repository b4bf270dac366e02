"""Builds the source of a generated reader or writer, and defines the functions that generated code calls."""

import struct
from collections.abc import Callable, Collection
from typing import Any, Final

from kustos.wire.primitives import EndsEarlyError, MalformedMessageError, TooManyElementsError
from kustos.wire.schemas import Field

ELEMENT_BYTES_SHIFT: Final = 6
"""An element with nested arrays counts once more for each 64 bytes."""


def bad(reason: str) -> None:
    """Raise `MalformedMessageError`; generated readers call it."""
    raise MalformedMessageError(reason)


def short(reason: str) -> None:
    """Raise `EndsEarlyError`; generated readers call it if they need more bytes."""
    raise EndsEarlyError(reason)


def too_many() -> None:
    """Raise `TooManyElementsError`; generated readers call it."""
    raise TooManyElementsError("too many array elements and tagged fields")


class Source:
    """Source lines of a function under construction, and the constants they use."""

    def __init__(
        self, namespace: dict[str, Any], flexible: bool, in_parts: Collection[str] = frozenset()
    ) -> None:
        self.lines: list[str] = []
        self.namespace = namespace
        self.flexible = flexible
        self.in_parts = in_parts
        """The structs that a function reads or writes in parts; empty: as a whole."""
        self.depth = 1

    def add(self, *lines: str) -> None:
        """Add lines at the current depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    def block(self, head: str, body: Callable[[], None]) -> None:
        """Add a line, and the lines of `body` one level deeper."""
        self.add(head)
        self.depth += 1
        body()
        self.depth -= 1

    def call(self, action: str, name: str, arguments: str) -> str:
        """Return the call that reads or writes a nested struct."""
        if name in self.in_parts:
            return f"yield from {action}_{name}_in_parts({arguments}, pause)"
        return f"{action}_{name}({arguments})"

    def count_element(self, field: Field, size: str) -> None:
        """Count an element of an array, which took `size` bytes, in a function in parts."""
        if not self.in_parts:
            return
        element = field.element
        is_one = element is None or element.name in self.in_parts or not element.has_array
        self.add(f"pause[0] -= {'1' if is_one else f'1 + ({size} >> {ELEMENT_BYTES_SHIFT})'}")
        self.add("if pause[0] <= 0: yield")

    def packer(self, code: str) -> str:
        """Return the name of the `Struct` of a code, big-endian."""
        name = "S_" + code.replace("?", "B")
        self.namespace.setdefault(name, struct.Struct(">" + code))
        return name

    def finish(self, action: str, name: str, arguments: str, result: str) -> None:
        """Put the function that reads or writes a struct into the namespace."""
        function = f"{action}_{name}"
        if self.in_parts:
            # a struct without arrays also needs a generator
            self.add("if False: yield")
            function, arguments = f"{function}_in_parts", f"{arguments}, pause"
        self.add(f"return {result}")
        self.namespace[function] = self.compile(f"{function}({arguments})")

    def compile(self, signature: str) -> Callable[..., Any]:
        """Return the function of this signature."""
        text = f"def {signature}:\n" + "\n".join(self.lines) + "\n"
        scope: dict[str, Any] = {}
        # the source consists of names of fields and constants of this module, never of received data
        exec(compile(text, f"<generated {signature}>", "exec"), self.namespace, scope)  # noqa: S102
        function: Callable[..., Any] = next(iter(scope.values()))
        return function
