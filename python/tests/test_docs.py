"""The examples of the README and of the guide run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    """The complete examples of a page: those that import strust."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in found if "import numpy" in block and "strust" in block]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "python/README.md"])
def test_complete_examples_print_what_they_say(page, capsys):
    found = blocks(page)
    assert found
    for block in found:
        exec(compile(block, page, "exec"), {})
        expected = re.findall(r"print\(.*?\)\s+# (.*)", block)
        assert capsys.readouterr().out.splitlines() == expected
