"""Compares folders: every byte counts, except for what depends on the clock."""

import csv
import io
import json
from pathlib import Path

from .tries import Failed


def same(folder: Path, expected: dict):
    """Fails unless the folder has exactly the expected files."""
    found = files(folder)
    if missing := expected.keys() - found.keys():
        raise Failed(f"missing: {', '.join(sorted(missing))}")
    if more := found.keys() - expected.keys():
        raise Failed(f"unexpected files: {', '.join(sorted(more))}")
    for name, content in expected.items():
        if found[name] != content:
            raise Failed(f"{name} differs from that of an undisturbed run")


def files(folder: Path) -> dict:
    """The files of a folder by name, without what depends on the clock."""
    return {
        str(path.relative_to(folder)): without_times(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    }


def raw(folder: Path) -> dict:
    """The files of a folder by name, unchanged."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def without_times(path: Path, folder: Path):
    """The content of a file, or the part of it that does not depend on the clock and on the place of the folder."""
    content = path.read_bytes()
    if path.suffix == ".json":
        content = content.replace(str(folder).encode(), b"FOLDER")
    try:
        if path.name == "timings.jsonl":
            return [json.loads(line)["epoch"] for line in content.splitlines()]
        if path.name == "checkpoint.bin":
            # The state is followed by a resume that must accept it; its seconds differ.
            return content.split(b" ", 2)[:2]
        if path.name == "summary.json" or path.parent.name == "checks":
            return without_seconds(json.loads(content))
        if path.name == "records.jsonl" and path.parent.parent.name != "runs":
            # Published records have times. Those of a job have none, and every byte of them counts.
            return [without_seconds(json.loads(line)) for line in content.splitlines()]
        if path.name == "summary.csv":
            return csv_without_seconds(content.decode())
        if "seconds" in path.name and path.parent.name == "figures":
            return whole_figure(path.suffix, content)
        if path.name == "report.html":
            return content.startswith(b"<!DOCTYPE html>") and content.rstrip().endswith(b"</html>")
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise Failed(f"{path.name} is damaged: {error}") from None
    return content


def without_seconds(value):
    """Leaves out all that was measured with the clock."""
    if isinstance(value, dict):
        return {key: without_seconds(inner) for key, inner in value.items() if "seconds" not in key}
    if isinstance(value, list):
        return [without_seconds(inner) for inner in value]
    return value


def csv_without_seconds(text: str):
    rows = list(csv.reader(io.StringIO(text)))
    kept = [i for i, name in enumerate(rows[0]) if "seconds" not in name] if rows else []
    return [[row[i] for i in kept] for row in rows]


def whole_figure(suffix: str, content: bytes) -> bool:
    """Whether a figure is complete to its last byte."""
    ends = {".svg": b"</svg>", ".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF"}
    return content.rstrip().endswith(ends[suffix])
