"""The examples of the READMEs and of the guide run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    """The Python examples of a page, without those that leave something out."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in found if "..." not in block]


@pytest.mark.parametrize("page", ["README.md", "docs/start/python.md", "docs/guides/scipy.md", "python/README.md"])
def test_the_examples_of_a_page_run_in_order_and_print_what_they_say(page, capsys):
    if "scipy" in page:
        pytest.importorskip("scipy")
    found, names = blocks(page), {}
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)
        expected = re.findall(r"print\(.*?\)\s+# (.*)", block)
        assert capsys.readouterr().out.splitlines() == expected
