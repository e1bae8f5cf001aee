"""The recipes of docs/guides/pytorch*.md, where the packages are installed."""

import os
import re
import runpy
from pathlib import Path

import pytest
import torch

PAGES = sorted((Path(__file__).parents[3] / "docs" / "guides").glob("pytorch*.md"))


def recipes() -> dict[str, str]:
    """The Python blocks by the heading above them. No two headings are the same."""
    found: dict[str, str] = {}
    for page in PAGES:
        for section in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            heading = section.splitlines()[0].strip("# ")
            blocks = re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
            if blocks:
                assert heading not in found, f"{page} repeats the heading {heading}"
                found[heading] = "\n".join(blocks)
    return found


RECIPES = recipes()
NEEDS = {"Lightning": ["lightning"], "Hugging Face Trainer": ["transformers", "accelerate"]}


@pytest.mark.skipif(not RECIPES, reason="the documentation is not beside the tests")
def test_the_documentation_has_both_recipes():
    assert set(NEEDS) <= set(RECIPES)


@pytest.mark.parametrize("heading", RECIPES)
def test_the_code_of_the_documentation_runs(heading, tmp_path, monkeypatch):
    for package in NEEDS.get(heading, []):
        pytest.importorskip(package)
    if "cuda" in RECIPES[heading] and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    if "torchrun" in RECIPES[heading]:
        pytest.skip("test_distributed.py runs it with several processes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    program = tmp_path / "recipe.py"
    program.write_text(RECIPES[heading], encoding="utf-8")
    torch.manual_seed(0)
    runpy.run_path(str(program))
