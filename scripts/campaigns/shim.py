"""Compiles shim.c, and the variables that it understands."""

import subprocess
from pathlib import Path


class Shim:
    def __init__(self, work: Path):
        self.library = work / "shim.so"
        source = Path(__file__).with_name("shim.c")
        command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(self.library), str(source), "-ldl"]
        subprocess.run(command, check=True)

    def disk(self, folder: Path, at: int, once: bool, mark: Path) -> dict:
        """The `at`-th operation on files below the folder fails; if not `once`, all later ones too."""
        variables = {"FAULT_FOLDER": str(folder), "FAULT_AT": str(at), "FAULT_MARK": str(mark)}
        if once:
            variables["FAULT_ONCE"] = "1"
        return {"LD_PRELOAD": str(self.library), **variables}

    def clock(self, seconds: int, only_time_of_day: bool, at: float) -> dict:
        """The clocks jump by so many seconds, `at` seconds after the start."""
        jump = f"{seconds}{'r' if only_time_of_day else ''}"
        return {"LD_PRELOAD": str(self.library), "CLOCK_JUMP": jump, "CLOCK_AT": str(int(1000 * at))}
