"""scikit-learn is optional."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_strust_alone_does_not_import_scikit_learn() -> None:
    assert run("import sys, strust; print('sklearn' in sys.modules)") == "False"


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None\ntry:\n import strust.sklearn\nexcept ImportError as e: print(e)"
    assert run(code) == "strust.sklearn needs scikit-learn: pip install strust[sklearn]"
