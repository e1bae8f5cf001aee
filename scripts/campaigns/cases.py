"""Every command that writes, as a case: what is there before, the command, and what a user does if it is stopped."""

import contextlib
import http.server
import random
import shutil
import threading
import time
from pathlib import Path

from .compare import files, raw
from .process import Process
from .tries import Campaign, Failed

EXPERIMENT = """name = "test"
epochs = {epochs}
batch = 8
seeds = 2

[figures]
formats = ["svg"]

[[problem]]
kind = "subspace"
d = 20
k = 2
n = 40

[[method]]
name = "str-p"

[[method]]
name = "auglag"
inner_epochs = 1
"""

TUNED = """name = "tuned"
epochs = 10
batch = 8
seeds = 2

[[problem]]
kind = "least-squares"
n = 40
d = 5
noise = 0.1

[[method]]
name = "sgd"
learning_rate = [1e-3, 0.1]

[tune]
metric = "objective_gap"
epochs = 5
seeds = 2
"""

FROM_FILE = """name = "data"
epochs = 30
batch = 8
seeds = 2

[figures]
formats = ["svg"]

[[problem]]
kind = "logistic"
data = "two.csv"

[[method]]
name = "str"
"""

# Values and gradients underflow, so that records have numbers that JSON has not.
UNDERFLOW = """name = "underflow"
epochs = 60
batch = 8
seeds = 1

[figures]
formats = ["svg"]

[[problem]]
kind = "factorization"
data = "zeros.csv"

[[method]]
name = "str"

[[method]]
name = "str-gauss-newton"

[[method]]
name = "auto"
"""

THEORY = """name = "short"
theory = "step-length"
seeds = 1
"""

BENCHMARK = """name = "tiny"
title = "A tiny benchmark"
method = "str"
seeds = 2

[[tuned]]
name = "sgd"
learning_rate = [0.01, 0.1]

[[untuned]]
name = "str"

[[vary]]
parameter = "grow"
factors = [0.75, 2.0]

[[task]]
name = "exact"
half = "development"
epochs = 10
batch = 8
[task.problem]
kind = "least-squares"
n = 40
d = 10

[[task]]
name = "noisy"
half = "test"
epochs = 10
batch = 8
[task.problem]
kind = "least-squares"
n = 40
d = 10
noise = 0.5
"""

NETWORK = """name = "network"
epochs = 1
batch = 512
seeds = 1

[figures]
formats = ["svg"]

[[problem]]
kind = "convnet"

[[method]]
name = "str"
"""

SAVE_OFTEN = ["--save-every", "0.003"]


class Case:
    """A command that writes. `prepare` makes what is there before; `command` is what a user types next."""

    name = ""
    # Whether it is tried only if --case names it.
    by_name = False

    def prepare(self, folder: Path, strust):
        """Makes the inputs. `strust` runs the program to its end."""

    def command(self, folder: Path) -> list:
        raise NotImplementedError

    def code(self) -> int:
        """The exit code of an undisturbed run."""
        return 0

    def check(self, folder: Path, before: dict, after: dict):
        """Checks the folder of a command that was stopped: what was there is the old file or the new one."""
        found = raw(folder)
        for name, old in before.items():
            if name not in found:
                raise Failed(f"{name} was there before, and the command removed it")
            if found[name] not in (old, after.get(name)) and not self.grows(name):
                raise Failed(f"{name} is neither the old file nor the new one")

    def grows(self, name: str) -> bool:
        """Whether a file is a log or depends on the clock; the comparison at the end checks it."""
        return False


class Run(Case):
    """`strust run`, and `strust resume` once the folder has a plan."""

    def __init__(self, name: str, text: str, plan="plan.json"):
        self.name, self.text, self.plan = name, text, plan

    def prepare(self, folder, strust):
        (folder / "experiment.toml").write_text(self.text)
        write_classes(folder / "two.csv")
        (folder / "zeros.csv").write_text("0,0,0,0,0\n" * 40)

    def command(self, folder):
        if (folder / "out" / self.plan).exists():
            return ["resume", "out", "-q", *SAVE_OFTEN]
        return ["run", "experiment.toml", "--out", "out", "-q", *SAVE_OFTEN]


class Network(Run):
    """A run with libtorch, whose threads must not keep a program from its end."""

    by_name = True

    def __init__(self):
        super().__init__("network", NETWORK)


class Reproduce(Case):
    name = "reproduce"

    def command(self, folder):
        if (folder / "out" / "plan.json").exists():
            return ["resume", "out", "-q", *SAVE_OFTEN]
        return ["reproduce", "digits", "--seeds", "1", "--epochs", "1", "--out", "out", "-q", *SAVE_OFTEN]


class Lengthen(Case):
    """`strust resume --epochs` of a finished run."""

    name = "lengthen"

    def prepare(self, folder, strust):
        finished_run(folder, strust, epochs=20)

    def command(self, folder):
        # A user who sees that the plan has the new length resumes without it.
        lengthened = '"epochs": 60' in (folder / "out/plan.json").read_text()
        return ["resume", "out", *([] if lengthened else ["--epochs", "60"]), "-q", *SAVE_OFTEN]

    def grows(self, name):
        return name.startswith("out/") and name != "out/plan.json"


class Report(Case):
    """`strust report` over the report of a run with other settings of its figures."""

    name = "report"

    def prepare(self, folder, strust):
        finished_run(folder, strust)
        strust("report", "out", "--no-titles", "--formats", "svg,pdf", "-q")

    def command(self, folder):
        return ["report", "out", "--formats", "svg,png,pdf", "--average", "mean", "-q"]


class Publish(Case):
    """`strust report --publish` over the published results of a shorter run."""

    name = "publish"

    def prepare(self, folder, strust):
        finished_run(folder, strust, out="old", epochs=4)
        strust("report", "old", "--publish", "kept", "-q")
        shutil.rmtree(folder / "old")
        finished_run(folder, strust)

    def command(self, folder):
        return ["report", "out", "--publish", "kept", "-q"]


class Into(Case):
    """`strust report --into`."""

    name = "into"

    def prepare(self, folder, strust):
        finished_run(folder, strust)
        text = "before\n<!-- strust:test -->\n" + "old\n" * 2000 + "<!-- /strust -->\nafter\n"
        (folder / "README.md").write_text(text)

    def command(self, folder):
        return ["report", "out", "--into", "README.md", "-q"]


class Compare(Case):
    """`strust report` of two runs."""

    name = "compare"

    def prepare(self, folder, strust):
        finished_run(folder, strust, out="a", epochs=3)
        finished_run(folder, strust, out="b", epochs=5)

    def command(self, folder):
        return ["report", "a", "b", "--out", "both", "-q"]


class Fit(Case):
    """`strust fit` over the model and the report of other settings."""

    def __init__(self, name: str, model: str, *options: str):
        self.name, self.model, self.options = name, model, options

    def prepare(self, folder, strust):
        write_table(folder / "table.csv")
        strust("fit", "table.csv", "--target", "y", "--seed", "7", "--save", self.model, "-q")

    def command(self, folder):
        return ["fit", "table.csv", "--target", "y", "--save", self.model, *self.options, "-q"]


class Predict(Case):
    """`strust predict` over earlier predictions."""

    name = "predict"

    def prepare(self, folder, strust):
        write_table(folder / "table.csv", rows=3000)
        strust("fit", "table.csv", "--target", "y", "--save", "model.json", "-q")
        (folder / "predictions.csv").write_text("old\n" * 50_000)

    def command(self, folder):
        return ["predict", "model.json", "table.csv", "--out", "predictions.csv", "-q"]


class Data(Case):
    """`strust data` from a local server. Its file has the right length and a wrong checksum, because the real files
    are not here: the download must be complete, and then refused and removed."""

    name = "data"
    LENGTH = 9_912_422

    def __init__(self, url: str):
        self.url = url

    def code(self):
        return 1

    def command(self, folder):
        return ["data", "mnist", "--to", "data", "--from", self.url, "-q"]

    def check(self, folder, before, after):
        for part in folder.glob("data/*"):
            content = part.read_bytes()
            if part.suffix != ".part" or content.strip(b"\0") or len(content) > self.LENGTH:
                raise Failed(f"{part.name} is not the beginning of the file that the server has")


def all_cases(url: str) -> list:
    return [
        Run("run", EXPERIMENT.format(epochs=30)),
        Run("tune", TUNED),
        Run("from-file", FROM_FILE),
        Run("underflow", UNDERFLOW),
        Run("theory", THEORY, "theory.json"),
        Run("benchmark", BENCHMARK, "benchmark.json"),
        Network(),
        Reproduce(),
        Lengthen(),
        Report(),
        Publish(),
        Into(),
        Compare(),
        Fit("fit", "model.json"),
        Fit("fit-network", "model.safetensors", "--model", "mlp", "--hidden", "8"),
        Predict(),
        Data(url),
    ]


class Prepared:
    """A case with its folder before the command, and the result of an undisturbed run."""

    def __init__(self, campaign: Campaign, case: Case):
        self.case, self.campaign = case, campaign
        self.template = campaign.work / f"template-{case.name}"
        self.template.mkdir()
        case.prepare(self.template, lambda *arguments: self.start(self.template, arguments).wait().expect(0))
        self.before = raw(self.template)
        folder = campaign.work / f"undisturbed-{case.name}"
        self.copy_to(folder)
        begin = time.monotonic()
        self.next(folder).wait().expect(case.code())
        self.seconds = time.monotonic() - begin
        self.after, self.expected = raw(folder), files(folder)

    def copy_to(self, folder: Path):
        shutil.copytree(self.template, folder, dirs_exist_ok=True)

    def start(self, folder: Path, arguments, environment=None) -> Process:
        return Process([self.campaign.program, *arguments], folder, environment)

    def next(self, folder: Path, environment=None) -> Process:
        """Starts what a user types next."""
        return self.start(folder, self.case.command(folder), environment)

    def check(self, folder: Path):
        self.case.check(folder, self.before, self.after)


@contextlib.contextmanager
def prepared(campaign: Campaign, names=None):
    """The selected cases, each prepared when it is first used."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Zeros)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        cases = all_cases(f"http://127.0.0.1:{server.server_port}")
        wanted = [c for c in cases if campaign.wants(c.name, c.by_name) and (names is None or c.name in names)]
        if not wanted:
            raise SystemExit(f"--case must be one of {', '.join(c.name for c in cases)}")
        yield Lazily(campaign, wanted)
    finally:
        server.shutdown()


class Lazily:
    def __init__(self, campaign: Campaign, cases: list):
        self.campaign, self.cases, self.ready = campaign, {case.name: case for case in cases}, {}

    def __getitem__(self, name: str) -> Prepared:
        if name not in self.ready:
            try:
                self.ready[name] = Prepared(self.campaign, self.cases[name])
            except Failed as failure:
                # Without the result of an undisturbed run there is nothing to compare with.
                raise SystemExit(f"the case {name} fails undisturbed: {failure}") from None
        return self.ready[name]

    def names(self) -> list:
        return list(self.cases)


class Zeros(http.server.BaseHTTPRequestHandler):
    """Serves a file of zeros under every name, also parts of it."""

    def do_GET(self):
        wanted = self.headers.get("Range")
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(Data.LENGTH - begin))
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{Data.LENGTH - 1}/{Data.LENGTH}")
        self.end_headers()
        # A killed program closes the connection.
        with contextlib.suppress(OSError):
            for at in range(begin, Data.LENGTH, 1 << 16):
                self.wfile.write(bytes(min(1 << 16, Data.LENGTH - at)))

    def log_message(self, *_):
        pass


def finished_run(folder: Path, strust, out="out", epochs=5):
    text = EXPERIMENT.format(epochs=epochs)
    if out != "out":
        text = text.replace('"test"', f'"{out}"')
    (folder / "experiment.toml").write_text(text)
    strust("run", "experiment.toml", "--out", out, "-q")


def write_classes(path: Path, seed=1):
    rng = random.Random(seed)
    rows = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(60)]
    path.write_text("".join(f"{a:.3f},{b:.3f},{int(a + b + rng.gauss(0, 0.3) > 0)}\n" for a, b in rows))


def write_table(path: Path, rows=300):
    rng = random.Random(1)
    lines = ["a,b,c,y"]
    for _ in range(rows):
        a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.choice(["red", "green", "blue"])
        lines.append(f"{a:.4f},{b:.4f},{c},{'yes' if a + b + (c == 'red') > 0 else 'no'}")
    path.write_text("\n".join(lines) + "\n")
