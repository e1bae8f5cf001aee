"""The compiled part: crates/strust-python."""

from collections.abc import Sequence

__version__: str

def program(arguments: Sequence[str]) -> int: ...
