#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every #include against the layers of ARCHITECTURE.md. Exit 1 and a line per wrong include."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAY_INCLUDE = {
    "base": set(),
    "wire": set(),
    "model": {"base"},
    "contention": {"base", "model"},
    "device": {"base", "model"},
    "host": {"base", "model"},
    "sample": {"base", "model", "device", "host"},
    "record": {"base", "model"},
    "import": {"base", "model", "record"},
    "export": {"base", "model", "record"},
    "analyze": {"base", "model"},
    "diagnose": {"base", "model", "analyze"},
    "report": {"base", "model"},
    "run": {"base", "model", "contention"},
    "live": {"base", "model", "device", "host", "sample", "record", "run"},
    "sim": {"base", "contention"},
}
EVERYTHING = {"cli", "bench", "tests"}
INCLUDE = re.compile(r'\s*#\s*include\s+"([\w.]+)/')


def layer_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def wrong_includes(path: pathlib.Path):
    layer = layer_of(path)
    if layer in EVERYTHING:
        return
    if layer not in MAY_INCLUDE:
        yield f"{path.relative_to(ROOT)}: folder '{layer}' is in no layer; add it to tools/check_layers.py"
        return
    if path.stem.endswith("_test") or path.stem.endswith("_fuzz"):
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found and found[1] != layer and found[1] not in MAY_INCLUDE[layer]:
            yield f"{path.relative_to(ROOT)}:{number}: {layer} may not include {found[1]}"


def main() -> int:
    folders = [ROOT / name for name in ("src", "sim", "inject") if (ROOT / name).is_dir()]
    files = sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in {".h", ".cc", ".c"})
    bad = [problem for path in files for problem in wrong_includes(path)]
    for problem in bad:
        print(problem)
    print(f"layers: {len(files)} files, {len(bad)} wrong includes")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
