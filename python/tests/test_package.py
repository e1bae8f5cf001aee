"""The package: imports, the program, the types."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import numpy as np
import pytest

import strust
from strust.diagnostics import diagnose


def python(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([sys.executable, *arguments], **options)


def test_the_tests_use_the_installed_package():
    assert "site-packages" in strust.__file__
    assert metadata.version("strust") == strust.__version__
    assert resources.files("strust").joinpath("py.typed").is_file()


def test_the_import_is_lazy():
    script = "import sys, strust; print(sorted({'torch', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)))"
    assert python("-c", script).stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["torch", "scipy", "sklearn"])
def test_a_missing_package_is_named(name):
    script = f"import sys; sys.modules[{name!r}] = None\nimport strust\nstrust.{name}"
    done = python("-c", script)
    assert done.returncode == 1
    assert f"pip install strust[{name}]" in done.stderr, done.stderr


def test_unknown_attributes_are_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = strust.nothing


def test_the_program_comes_with_the_package(tmp_path):
    module = python("-m", "strust", "--version")
    assert module.stdout == f"strust {strust.__version__}\n"
    command = Path(sys.executable).with_name("strust")
    assert subprocess.run([command, "--version"], capture_output=True, text=True).stdout == module.stdout
    assert python("-m", "strust", "nonsense").returncode == 2
    missing = python("-m", "strust", "run", "missing.toml", cwd=tmp_path)
    assert missing.returncode == 1
    assert "missing.toml" in missing.stderr


def test_a_run_of_the_program_is_diagnosed(tmp_path):
    experiment = tmp_path / "small.toml"
    experiment.write_text(
        'name = "small"\nepochs = 5\nseeds = 1\n[[problem]]\nkind = "least-squares"\nn = 50\nd = 3\n'
        '[[method]]\nname = "auto"\n'
    )
    done = python("-m", "strust", "run", str(experiment), "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = (tmp_path / "runs/small/plan.json").read_text()
    assert "strust run" in plan
    assert "-m strust" not in plan
    (found,) = diagnose(tmp_path / "runs/small")
    assert found.method == "auto"
    assert found.findings
    assert str(found.verdict) in repr(found)
    with pytest.raises(ValueError, match="nowhere"):
        diagnose(tmp_path / "nowhere")


def test_the_program_fits_a_file(tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    rows = np.column_stack([rows, rows @ [1, 2, 3]])
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b,c,y", comments="")
    done = python("-m", "strust", "fit", "data.csv", "--target", "y", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.json").is_file()


@pytest.mark.parametrize(
    "command", [["reproduce", "theory"], ["reproduce", "constrained"], ["run", "zero-tuning"], ["bench"]]
)
def test_the_program_has_no_suites_and_names_the_one_that_has(tmp_path, command):
    done = python("-m", "strust", *command, cwd=tmp_path)
    assert done.returncode == 1
    assert "cargo install --path crates/strust-cli" in done.stderr
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_the_program(tmp_path):
    import signal
    import time

    process = subprocess.Popen(
        [sys.executable, "-m", "strust", "reproduce", "subspace", "--out", "x"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(200):
        if (tmp_path / "x/plan.json").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "resume with: strust resume x" in errors


@pytest.mark.skipif(not os.environ.get("STRUST_TYPES"), reason="STRUST_TYPES is not set")
@pytest.mark.parametrize("checker", [["-m", "mypy"], ["-m", "pyright", "--pythonpath", sys.executable]])
def test_types_are_strict(checker):
    done = python(*checker, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout
