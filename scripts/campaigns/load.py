"""Large experiments: many jobs, many epochs, many seeds and methods, many threads. Each is one try with fixed limits."""

import resource
import signal
import subprocess
import time

from .tries import Failed

GIB = 1 << 30
MIB = 1 << 20

PROBLEM = '[[problem]]\nkind = "least-squares"\nn = 4\nd = 2\n'
METHOD = '[[method]]\nname = "str"\n'
RATES = ", ".join(f"{0.001 * (i + 1):.3f}" for i in range(20))

# By name: the experiment, more arguments, and the limits of report.html, of all other files and of memory in bytes.
CASES = {
    "jobs": (f"epochs = 1\nbatch = 2\nseeds = 100000\n{PROBLEM}{METHOD}", [], 5 * MIB, GIB, 2 * GIB),
    "epochs": (f"epochs = 1000000\nbatch = 2\nseeds = 1\n{PROBLEM}{METHOD}", [], 5 * MIB, 64 * MIB, GIB),
    "report": (
        f'epochs = 20\nbatch = 2\nseeds = 200\n{PROBLEM}[[method]]\nname = "sgd"\nlearning_rate = [{RATES}]\n',
        [],
        5 * MIB,
        256 * MIB,
        GIB,
    ),
    "threads": (f"epochs = 200\nbatch = 2\nseeds = 640\n{PROBLEM}{METHOD}", ["--jobs", "64"], 5 * MIB, GIB, GIB),
}


def run(campaign):
    for name, (experiment, more, page, others, memory) in CASES.items():
        if campaign.wants(name) and campaign.goes_on():

            def action(folder, name=name, case=(experiment, more, page, others, memory)):
                one(campaign, folder, name, *case)

            campaign.attempt(name, action)


def one(campaign, folder, name, experiment, more, page, others, memory):
    (folder / "load.toml").write_text(f'name = "load"\n{experiment}')
    command = [campaign.program, "run", "load.toml", "--out", "out", "--quiet", *more]
    # Ctrl-C in the middle, then to the end.
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(2.0)
    stopped = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    stopped = time.monotonic() - stopped
    if process.returncode not in (0, 1) or (process.returncode == 1 and "resume" not in error):
        raise Failed(f"Ctrl-C ended with {process.returncode}: {error}")
    began = time.monotonic()
    ended = subprocess.run(
        [campaign.program, "resume", "out", "--quiet", *more], cwd=folder, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    if ended.returncode != 0:
        raise Failed(f"{name}: resume ended with {ended.returncode}: {ended.stderr}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    sizes = {file: file.stat().st_size for file in (folder / "out").rglob("*") if file.is_file()}
    report = sizes.pop(folder / "out" / "report.html")
    print(
        f"{name}: {seconds:.0f} s, at most {peak // MIB} MiB of memory so far, a page of {report / MIB:.1f} MiB, "
        f"{sum(sizes.values()) // MIB} MiB in {len(sizes)} other files; stopped {stopped:.1f} s after Ctrl-C",
        flush=True,
    )
    for what, size, limit in [("page", report, page), ("files", sum(sizes.values()), others), ("memory", peak, memory)]:
        if size > limit:
            raise Failed(f"{name}: {what}: {size} bytes, more than {limit}")
