# SPDX-License-Identifier: Apache-2.0
"""The package as people install it: offline, typed, of the program's version, for every Python since 3.8."""
import ast
import re
import shutil
import subprocess
import sys

import pytest

import headroom
from ring_support import PACKAGE, ROOT, environment

SOURCES = sorted((PACKAGE / "headroom").rglob("*.py"))


def test_it_has_the_programs_version():
    cmake = (ROOT / "CMakeLists.txt").read_text("utf-8")
    assert re.search(r"project\(headroom VERSION ([\d.]+)", cmake).group(1) == headroom.__version__


def test_its_language_is_that_of_3_8():
    assert len(SOURCES) > 10
    for source in SOURCES:
        ast.parse(source.read_text("utf-8"), feature_version=(3, 8))


def test_it_imports_nothing_but_pythons_library():
    """Frameworks are imported by the callbacks, by name, and pandas by what makes frames."""
    allowed = set(getattr(sys, "stdlib_module_names", ())) | {"headroom", "pandas"}
    if len(allowed) < 100:
        pytest.skip("this Python does not list its modules")
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= allowed, source


def test_an_import_that_is_not_recorded_is_small():
    code = ("import sys; before = set(sys.modules); import headroom; "
            "print(sorted(name for name in set(sys.modules) - before if name.startswith('headroom')), "
            "any(name in sys.modules for name in ('json', 'mmap', 'subprocess', 'inspect', 'tempfile')))")
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environment(None), capture_output=True, text=True,
                          check=True)
    assert done.stdout == "['headroom', 'headroom._marks'] False\n"


def test_pip_installs_it_without_a_network(tmp_path):
    tools = subprocess.run([sys.executable, "-c", "import setuptools, wheel, pip; print(setuptools.__version__)"],
                           capture_output=True, text=True, check=False)
    if tools.returncode != 0 or int(tools.stdout.split(".")[0]) < 61:
        pytest.skip("pip, wheel and setuptools 61 are not installed")
    source = tmp_path / "source"  # setuptools writes where it builds
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps",
                    "--target", str(tmp_path / "target"), str(source)], check=True, capture_output=True, timeout=300)
    env = environment(None)
    env["PYTHONPATH"] = str(tmp_path / "target")
    code = "import headroom.callbacks.torch, headroom.recording; print(headroom.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == str(tmp_path / "target" / "headroom" / "__init__.py")
    assert (tmp_path / "target" / "headroom" / "py.typed").exists()


def test_its_types_are_sound(tmp_path):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed")
    user = tmp_path / "user.py"
    user.write_text("import headroom\n\n@headroom.phase('a')\ndef double(x: int) -> int:\n    return 2 * x\n\n"
                    "with headroom.phase('b') as one:\n    headroom.step(samples=double(3))\nname: str = one.name\n"
                    "budget: object = headroom.Recording('x').ledger()['budget_ns']\n", encoding="utf-8")
    done = subprocess.run(["mypy", "--config-file", str(PACKAGE / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"),
                           str(PACKAGE / "headroom"), str(user)], capture_output=True, text=True, check=False, cwd=PACKAGE)
    assert done.returncode == 0, done.stdout + done.stderr
