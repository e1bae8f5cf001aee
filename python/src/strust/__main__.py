"""``python -m strust``: the same program as the command ``strust``."""

from __future__ import annotations

import signal
import sys

from strust import _native


def main() -> int:
    """Run the program with the arguments of the process and return its exit code."""
    # The program handles Ctrl-C itself: Python must not raise KeyboardInterrupt after it has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.program(["strust", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
