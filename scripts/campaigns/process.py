"""Starts the program, disturbs it, and waits for it with a limit."""

import os
import signal
import subprocess
import time
from pathlib import Path

from .tries import Failed

# A command takes a second or so. If one takes this long, it hangs, even on a busy machine.
PATIENCE = 90.0


class Process:
    """A running program. Its standard error goes to a file, so that no pipe can fill up."""

    def __init__(self, arguments, folder: Path, environment=None):
        self.arguments = arguments
        # Outside of the folder of the try, because the comparison must not see it.
        self.log = folder.with_name(f"{folder.name}.{time.monotonic_ns()}.stderr")
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                arguments,
                cwd=folder,
                env={**os.environ, "NO_PROXY": "*", "RUST_BACKTRACE": "0", **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def running(self) -> bool:
        return self.child.poll() is None

    def send(self, number: int, group=False):
        """Sends a signal to the process or to its whole group."""
        try:
            (os.killpg if group else os.kill)(self.child.pid, number)
        except ProcessLookupError:
            pass

    def wait(self, patience=PATIENCE) -> "Ended":
        """Waits for the end. A program that does not end fails the try, with the place where it waits."""
        try:
            code = self.child.wait(patience)
        except subprocess.TimeoutExpired:
            where = stacks(self.child.pid)
            self.send(signal.SIGKILL, group=True)
            self.child.wait()
            raise Failed(f"{self.shown()} did not end within {patience:.0f} s\n{where}") from None
        ended = Ended(code, self.log.read_text(errors="replace"), self.shown())
        self.log.unlink()
        return ended

    def shown(self) -> str:
        return "strust " + " ".join(self.arguments[1:])


class Ended:
    """The end of a program."""

    def __init__(self, code: int, error: str, command: str):
        self.code, self.error, self.command = code, error, command
        if "panicked" in error:
            raise Failed(f"{command} panicked: {error.strip()}")
        # Crashes that are no panics. Signals that a campaign sends are not among them.
        if -code in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
            raise Failed(f"{command} ended with {signal.Signals(-code).name}: {error.strip()}")

    def expect(self, *codes: int) -> "Ended":
        if self.code not in codes:
            wanted = " or ".join(map(str, codes))
            raise Failed(f"{self.command} ended with {self.code} instead of {wanted}: {self.error.strip()}")
        return self


def stacks(pid: int) -> str:
    """Where the threads of a process wait: by gdb if it is installed, otherwise what the kernel tells."""
    try:
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 15"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        if "Thread" in found or "#0" in found:
            return found
    except (OSError, subprocess.TimeoutExpired):
        pass
    lines = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            lines.append(f"thread {task.name} {(task / 'comm').read_text().strip()}: {(task / 'wchan').read_text()}")
        except OSError:
            continue
    return "\n".join(lines)
