"""A campaign: its limits, its counts, its failures and its verdict."""

import collections
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """What the program did wrong in a try."""


class Campaign:
    def __init__(self, arguments):
        self.name = arguments.campaign
        self.arguments = arguments
        self.counts = collections.Counter()
        self.failures = []
        self.started = time.monotonic()
        self.last_line = 0.0
        self.work = Path(tempfile.mkdtemp(prefix="strust-campaign-", dir=arguments.work))
        self._program = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The folders of failed tries stay.
        if self.failures:
            print(f"The folders of failed tries are in {self.work}")
            for entry in self.work.iterdir():
                if entry.name not in {folder for _, _, folder in self.failures}:
                    remove(entry)
        else:
            remove(self.work)

    @property
    def program(self) -> str:
        """The path of the program."""
        if self._program is None:
            self._program = find_program()
            print(f"program: {self._program}", flush=True)
        return self._program

    def goes_on(self) -> bool:
        """Whether time and tries are left."""
        minutes, tries = self.arguments.minutes, self.arguments.tries
        if minutes is not None and time.monotonic() - self.started > 60 * minutes:
            return False
        return tries is None or self.counts["tries"] < tries

    def wants(self, case: str, by_name=False) -> bool:
        """Whether --case selects this case. Without it, all are selected that need not be named."""
        return not by_name if self.arguments.case is None else case in self.arguments.case.split(",")

    def seeds(self):
        """Whole numbers as seeds: those of --seed and --tries, otherwise from a number that differs each time."""
        given = self.arguments.seed
        if given is not None and self.arguments.tries is None:
            yield int(given)
            return
        seed = int(given) if given is not None else int(time.time()) % 1_000_000 * 1000
        while self.goes_on():
            yield seed
            seed += 1

    def attempt(self, seed, action):
        """One try in a folder of its own. A failure is counted and its folder kept."""
        folder = self.work / f"try-{seed}".replace(":", "-")
        folder.mkdir()
        try:
            action(folder)
        except Failed as failure:
            self.failures.append((seed, str(failure), folder.name))
            print(f"\nFAILED  --seed {seed}: {failure}", flush=True)
        else:
            remove(folder)
        self.counts["tries"] += 1
        self.show()

    def show(self, now=False):
        """Prints the counts: often on a terminal, otherwise twice a minute."""
        terminal = sys.stdout.isatty()
        since = time.monotonic() - self.last_line
        if now or since > (0.2 if terminal else 30.0):
            self.last_line = time.monotonic()
            end = "\r" if terminal and not now else "\n"
            print(f"{self.name}: {self.summary()}", end=end, flush=True)

    def summary(self) -> str:
        seconds = time.monotonic() - self.started
        counts = ", ".join(f"{count:,} {what}" for what, count in self.counts.items())
        return f"{counts or 'nothing yet'}, {len(self.failures)} failures, {seconds / 60:.1f} min"

    def verdict(self) -> int:
        """Prints the result; the exit code."""
        self.show(now=True)
        for seed, why, _ in self.failures:
            print(f"  --seed {seed}: {why.splitlines()[0]}")
        if not self.counts["tries"]:
            print(f"VERDICT {self.name}: nothing was tried")
            return 2
        print(f"VERDICT {self.name}: {'FAILED' if self.failures else 'passed'}")
        return 1 if self.failures else 0


def find_program() -> str:
    """The program to test."""
    if given := os.environ.get("STRUST"):
        return str(Path(given).resolve())
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    built = target / "release" / "strust"
    if not built.exists():
        command = ["cargo", "build", "--release", "--locked", "-p", "strust-cli"]
        subprocess.run(command, cwd=REPOSITORY, check=True)
    return str(built.resolve())


def remove(path: Path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
