"""Small valid files for every fuzz target."""

import gzip
import io
import json
import lzma
import shutil
import struct
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from .cases import BENCHMARK
from .tries import REPOSITORY

LIBSVM = b"+1 1:0.5 3:2.25\n-1 2:1e-3\n# a comment\n+1 1:-7 2:3 3:4\n"
CSV = b"# x, y\nwidth,height,kind\n1.0,2.0,0\n-3e-5,4.25,1\n"
TABLE = b'a,b,"c, d",y\n1.5,red,"x ""y""",yes\n,green,,no\n-2e3,blue,z,yes\n'


def write_all(to: Path, program: str):
    """Writes the seeds of every target into a folder of its name."""
    data_files(to)
    results(to, program)
    for path in sorted(REPOSITORY.glob("crates/*/experiments/*.toml")):
        put(to, "experiment", path.stem, path.read_bytes())


def put(to: Path, target: str, name: str, content: bytes):
    folder = to / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def data_files(to: Path):
    put(to, "libsvm", "small", LIBSVM)
    put(to, "csv", "header", CSV)
    put(to, "csv", "plain", b"1,2,0\n3,4,1\n")
    put(to, "table", "words", TABLE)
    put(to, "table", "tabs", TABLE.replace(b",", b"\t"))
    put(to, "table", "numbers", b"1;2;3\r\n4;5;6\r\n")
    put(to, "table", "marks", "a;day;y\n$1,200;31.5.24;-\n$5;1.6.24;3,5 %\n".encode())
    put(to, "json-lines", "two", b'{"a": 1, "day": "2024-05-31", "y": null}\n{"y": true, "a": "1,5"}\n')
    for kind, numbers in [("<f8", struct.pack("<4d", 1, 2, 3, 4)), ("|u1", bytes([1, 2, 3, 4])), (">i4", bytes(16))]:
        put(to, "npy", f"array{kind[1:]}", npy(kind, numbers))
    put(to, "idx", "bytes", idx([2, 3], bytes(6)))
    put(to, "gz", "one", gzip.compress(LIBSVM, mtime=0))
    put(to, "gz", "two", gzip.compress(LIBSVM, mtime=0) * 2)
    put(to, "gz", "stored", gzip.compress(LIBSVM, 0, mtime=0))
    put(to, "xz", "one", lzma.compress(LIBSVM, preset=0))
    put(to, "xz", "crc32", lzma.compress(LIBSVM * 20, check=lzma.CHECK_CRC32))
    images, labels = idx([2, 1, 2], bytes([0, 255, 7, 9])), idx([2], bytes([3, 9]))
    put(to, "mnist", "two", bytes([1 + len(images)]) + images + labels)
    record = bytes([6]) * 3073
    put(to, "cifar", "one", record)
    put(to, "archive", "tar", tar({"data_batch_1.bin": record, "test_batch.bin": record}))


def npy(kind: str, numbers: bytes) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 2), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers


def idx(shape: list, content: bytes) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", size) for size in shape) + content


def tar(files: dict) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def results(to: Path, program: str):
    """The files of a run of fuzz/experiment.toml, of models, and of the other kinds of plans."""
    work = Path(tempfile.mkdtemp(prefix="strust-seeds-"))

    def strust(*arguments):
        subprocess.run([program, *arguments, "-q"], cwd=work, check=True, stdin=subprocess.DEVNULL)

    strust("run", str(REPOSITORY / "fuzz/experiment.toml"), "--out", "out")
    plan = json.loads((work / "out/plan.json").read_text())
    put(to, "plan", "plan", b"\0" + (work / "out/plan.json").read_bytes())
    put(to, "summary", "summary", (work / "out/summary.json").read_bytes())
    for number, job in enumerate(plan["jobs"]):
        folder = work / "out/runs" / job["name"]
        body = (folder / "checkpoint.bin").read_bytes().split(b"\n", 1)[1]
        put(to, "checkpoint", job["name"], bytes([number]) + body)
        logs = [(folder / name).read_bytes() for name in ("records.jsonl", "timings.jsonl")]
        put(to, "records", job["name"], bytes([number]) + b"\0".join(logs))
    (work / "benchmark.toml").write_text(BENCHMARK)
    strust("run", "benchmark.toml", "--out", "benchmark")
    put(to, "plan", "benchmark", b"\x02" + (work / "benchmark/benchmark.json").read_bytes())
    put(to, "plan", "theory", b"\x01" + started(program, work, "theory", "theory.json"))
    put(to, "plan", "constrained", b"\x03" + started(program, work, "constrained", "constrained.json"))
    (work / "table.csv").write_bytes(TABLE + b"1,red,q,no\n" * 8)
    (work / "numbers.csv").write_text("a,b,y\n" + "".join(f"{i},{i * i % 7},{i % 2}\n" for i in range(20)))
    strust("fit", "numbers.csv", "--target", "y", "--save", "linear.json")
    strust("fit", "table.csv", "--target", "y", "--test", "0.4", "--save", "words.json")
    strust("fit", "numbers.csv", "--target", "y", "--model", "mlp", "--hidden", "3", "--save", "network.safetensors")
    for name in ("linear.json", "words.json", "network.safetensors"):
        put(to, "model", name, (work / name).read_bytes())
    golden = json.loads((REPOSITORY / "crates/strust/tests/golden/state.json").read_text())
    put(to, "state", "golden", json.dumps(golden["state"]).encode())
    shutil.rmtree(work)


def started(program: str, work: Path, what: str, plan: str) -> bytes:
    """The plan of a long run, which is stopped as soon as it has one."""
    out = work / f"out-{what}"
    child = subprocess.Popen(
        [program, "reproduce", what, "--out", str(out), "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (out / plan).exists() and child.poll() is None:
        time.sleep(0.05)
    child.kill()
    child.wait()
    return (out / plan).read_bytes()
