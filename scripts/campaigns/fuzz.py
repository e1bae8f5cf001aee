"""Fuzzing with coverage feedback: libFuzzer over every reader and every file that the program reads back (fuzz/).

It needs a stable compiler and a C++ compiler. Inputs that fail are kept in the folder fuzz/findings; `--seed FILE` runs
one of them again, with --case for its target.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from . import seeds
from .tries import REPOSITORY, Failed

FUZZ = REPOSITORY / "fuzz"
FINDINGS = FUZZ / "findings"
# The ceiling of docs/evidence/reliability.md.
LIMITS = ["-rss_limit_mb=1024", "-malloc_limit_mb=1024", "-timeout=10"]
COVERAGE = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]


def run(campaign):
    fuzzer = build()
    targets = [name for name in names() if campaign.wants(name)]
    if not targets:
        raise SystemExit(f"--case must be one of {', '.join(names())}")
    if campaign.arguments.seed is not None:
        for target in targets:
            campaign.attempt(target, lambda _, target=target: again(fuzzer, target, campaign.arguments.seed))
        return
    corpora = campaign.work / "seeds"
    seeds.write_all(corpora, campaign.program)
    FINDINGS.mkdir(exist_ok=True)
    minutes = campaign.arguments.minutes
    limits = [*LIMITS, "-max_len=65536", "-print_final_stats=1", "-verbosity=1"]
    if minutes is not None:
        limits.append(f"-max_total_time={max(1, int(60 * minutes / len(targets)))}")
    if campaign.arguments.tries is not None:
        limits.append(f"-runs={campaign.arguments.tries}")
    for target in targets:
        corpus = corpora / target
        campaign.attempt(target, lambda _, t=target, c=corpus: fuzz(campaign, fuzzer, t, c, limits))


def names() -> list:
    """The targets, from their list in Rust."""
    text = (FUZZ / "src/targets/mod.rs").read_text()
    return re.findall(r'^    \("([a-z0-9]+)", ', text, re.MULTILINE)


def build() -> Path:
    """Builds the targets, or takes those of the variable STRUST_FUZZ."""
    if given := os.environ.get("STRUST_FUZZ"):
        return Path(given).resolve()
    host = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)[1]
    target = Path(os.environ.get("CARGO_TARGET_DIR", FUZZ / "target"))
    environment = {**os.environ, "RUSTFLAGS": " ".join(COVERAGE), "CARGO_TARGET_DIR": str(target)}
    # With --target, build scripts and macros are not instrumented.
    command = ["cargo", "build", "--release", "--locked", "--target", host]
    subprocess.run(command, cwd=FUZZ, env=environment, check=True)
    return target / host / "release" / "strust-fuzz"


def fuzz(campaign, fuzzer: Path, target: str, corpus: Path, limits: list):
    before = set(FINDINGS.iterdir())
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        command = [str(fuzzer), *limits, f"-artifact_prefix={FINDINGS}/{target}-", str(corpus)]
        # Its own exit code is that of the finding.
        code = subprocess.run(command, env=environment(target), stdout=log, stderr=log, check=False).returncode
        log.seek(0)
        output = log.read()
    executions = re.search(r"stat::number_of_executed_units: (\d+)", output)
    memory = re.search(r"stat::peak_rss_mb: +(\d+)", output)
    covered = re.findall(r"cov: (\d+)", output)
    count = int(executions[1]) if executions else 0
    campaign.counts["executions"] += count
    print(
        f"{target:>12}: {count:>11,} executions, {covered[-1] if covered else '?'} edges, "
        f"{memory[1] if memory else '?'} MiB",
        flush=True,
    )
    clean_up()
    found = sorted(path.name for path in set(FINDINGS.iterdir()) - before)
    if code != 0 or found:
        reason = re.search(r"panicked at .*\n.*|ERROR: libFuzzer: .*", output)
        raise Failed(f"{target}: {reason[0] if reason else output[-500:]} ({', '.join(found) or 'no file'})")


def again(fuzzer: Path, target: str, file: str):
    done = subprocess.run(
        [str(fuzzer), *LIMITS, file],
        env=environment(target),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    clean_up()
    if done.returncode != 0:
        raise Failed(done.stderr)


def environment(target: str) -> dict:
    return {**os.environ, "TARGET": target, "RUST_BACKTRACE": "0"}


def clean_up():
    """A fuzzer that fails leaves its folder in memory."""
    for folder in Path("/dev/shm").glob("strust-fuzz-*"):
        if not Path(f"/proc/{folder.name.rsplit('-', 1)[-1]}").exists():
            subprocess.run(["rm", "-rf", str(folder)], check=False)
