"""The examples of docs/guides/sklearn.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

DOCS = Path(__file__).parents[3] / "docs" / "guides" / "sklearn.md"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, str(DOCS), "exec"), {})
    assert "[0.5 0.3 0.2 0. ]" in capsys.readouterr().out
