"""``python -m strust``: the same program as the command ``strust``."""

from __future__ import annotations

import sys

from strust import _native


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    return _native.program(["strust", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
