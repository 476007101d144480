#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every #include against the layers of ARCHITECTURE.md, and the table against the use. Exit 1 and a line per fault."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAY_INCLUDE = {
    "base": set(),
    "wire": set(),
    "model": {"base"},
    "stacks": {"base", "model"},
    "device": {"base", "model"},
    "host": {"base", "model"},
    "python": {"base", "model", "host", "stacks"},
    "pump": {"base"},
    "marks": {"base", "model", "host", "wire", "output", "pump"},
    "sample": {"base", "model"},
    "record": {"base", "model"},
    "import": {"base", "model"},
    "export": {"base", "model", "stacks"},
    "exposition": {"base", "model"},
    "analyze": {"base", "model", "stacks"},
    "diagnose": {"base", "model", "stacks", "analyze"},
    "view": {"base", "model", "analyze"},
    "plan": {"base", "model", "analyze"},
    "compare": {"base", "model"},
    "fleet": {"base", "model"},
    "storage": {"base", "model"},
    "tune": {"base", "model"},
    "probe": {"base", "model"},
    "report": {"base", "model", "view"},
    "screen": {"base", "model", "view", "report"},
    "output": {"base", "model"},
    "tasks": {"base", "model", "output"},
    "scheduler": {"base", "model"},
    "live": {"base", "model", "sample"},
    "serve": {"base", "report", "live"},
    "batch": {"base", "model", "tasks", "scheduler", "output", "device", "host", "record", "live"},
    "doctor": {"base", "model", "device"},
    "inject": {"wire"},
    "sim": {"base"},
}
EVERYTHING = {"cli", "bench", "tests"}
INCLUDE = re.compile(r'\s*#\s*include\s+"([\w.]+)/')
INCLUDED = re.compile(r'\s*#\s*include\s+"([\w./]+)"')

# Values in, values out: these rooms may not touch the world, and the headers that would let them are named here.
PURE = {"model", "stacks", "analyze", "diagnose", "view", "plan", "compare", "fleet", "exposition", "report", "screen", "output", "tasks", "scheduler", "tune", "probe"}
WORLD = re.compile(r"\s*#\s*include\s+<((?:sys/|linux/|net|arpa/)[\w./]+|unistd\.h|fcntl\.h|poll\.h|dirent\.h|signal\.h|csignal"
                   r"|pthread\.h|thread|mutex|filesystem|fstream|iostream|chrono|ctime|dlfcn\.h|sqlite3\.h)>")
OPENS_SQLITE = re.compile(r"\bsqlite3_open")
WORLDLY = re.compile(r'\s*#\s*include\s+"base/(child|fd|filesystem|output_file|sqlite|database_copy|ids)\.h"')


def layer_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def is_test(path: pathlib.Path) -> bool:
    return path.stem.endswith(("_test", "_fuzz")) or path.relative_to(ROOT).parts[0] in ("bench", "tests")


def of_tests(files):
    """Tests, and the headers that only they include: what these need, the product does not."""
    everywhere = [*files, *(p for folder in ("bench", "tests") for p in (ROOT / folder).rglob("*") if p.suffix in {".h", ".cc"})]
    includers = {path: set() for path in files if path.suffix == ".h"}
    for path in everywhere:
        for name in map(INCLUDED.match, path.read_text(encoding="utf-8").splitlines()):
            for header in (ROOT / "src" / name[1], ROOT / name[1], path.parent / name[1]) if name else ():
                if header in includers:
                    includers[header].add(path)
    found = {path for path in everywhere if is_test(path)}
    while more := {header for header, users in includers.items() if users and users <= found} - found:
        found |= more
    return found


def wrong_includes(path: pathlib.Path):
    layer = layer_of(path)
    if layer in EVERYTHING:
        return
    if layer not in MAY_INCLUDE:
        yield f"{path.relative_to(ROOT)}: folder '{layer}' is in no layer; add it to tools/check_layers.py"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found and found[1] != layer and found[1] not in MAY_INCLUDE[layer]:
            yield f"{path.relative_to(ROOT)}:{number}: {layer} may not include {found[1]}"
        world = WORLD.match(line) or WORLDLY.match(line)
        if world and layer in PURE:
            yield f"{path.relative_to(ROOT)}:{number}: {layer} is pure and may not include {world[1]}"


def other_openers(path: pathlib.Path):
    """SQLite files may be anybody's: all are opened by base/sqlite.cc, which keeps SQLite from every other file."""
    if path.stem.endswith("_test") or path.relative_to(ROOT) == pathlib.Path("src/base/sqlite.cc"):
        return
    if OPENS_SQLITE.search(path.read_text(encoding="utf-8")):
        yield f"{path.relative_to(ROOT)}: opens SQLite files past Database::open (base/sqlite.h)"


def unused_edges(files):
    """The table is as tight as the use: an edge that no include of the product needs is a mistake waiting to be made."""
    used = {layer: set() for layer in MAY_INCLUDE}
    for path in files:
        layer = layer_of(path)
        if layer in used:
            used[layer] |= {m[1] for m in map(INCLUDE.match, path.read_text(encoding="utf-8").splitlines()) if m}
    for layer, allowed in MAY_INCLUDE.items():
        for edge in sorted(allowed - used[layer]):
            yield f"tools/check_layers.py: {layer} may include {edge}, and does not"


def left_by_a_merge():
    """Text that somebody forgot to choose from, in any file of the repository: no compiler reads the README."""
    found = subprocess.run(["git", "-C", ROOT, "grep", "-nIE", "^(<<<<<<<|>>>>>>>) "], capture_output=True, text=True, check=False)
    for line in found.stdout.splitlines():
        yield f"{line}: left by a merge"


FILE_IN_WORDS = re.compile(r"[\w./-]+\.(?:cc|h)\b")
OF_OTHERS = {"capability.h", "magic.h", "nvml.h"}  # of the kernel, and of the driver


def files_that_are_gone(files):
    """What a comment calls a file of ours, and is none."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False).stdout.splitlines()
    names = {pathlib.PurePath(name).name for name in listed} | {path.name for path in files} | OF_OTHERS
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word in FILE_IN_WORDS.findall(line.partition("//")[2]):
                if pathlib.PurePath(word).name not in names and not word.startswith("/"):
                    yield f"{path.relative_to(ROOT)}:{number}: there is no {word}"


LONGEST = 60  # lines of a function, from its name to its end
RAW = re.compile(r'R"(\w*)\(')
NO_FUNCTION = re.compile(r"\s*(namespace|enum|union|extern|using|static_assert|struct|class)\b|\s*(//|#|}|$)")


def functions_of(lines):
    """(first line, last line) of each function at the top level of a file or of a class, as clang-format lays them out."""
    top = ""  # what the last line in the first column begins
    starts = {0: 0, 2: 0}
    raw = ""  # the end of the raw string that a line before began
    for number, line in enumerate(lines, 1):
        if raw:
            raw = "" if raw in line else raw
            continue
        if (opens := RAW.search(line)) and f'){opens[1]}"' not in line[opens.end():]:
            raw = f'){opens[1]}"'
        indent = len(line) - len(line.lstrip(" "))
        if line in ("}", "  }") and starts[indent] and (indent == 0 or re.match(r"(template\b|struct\b|class\b)", top)):
            yield starts[indent], number
        if indent in starts and not NO_FUNCTION.match(line):
            starts[indent] = number
        elif indent in starts and line.strip().startswith("}"):
            starts[indent] = 0
        if indent == 0 and line and not line.startswith(("//", "#", "}")):
            top = line
            starts[2] = 0


def long_functions(files):
    """A function that does not fit on a screen is several."""
    for path in files:
        for first, last in functions_of(path.read_text(encoding="utf-8").splitlines()):
            if last - first + 1 > LONGEST:
                yield f"{path.relative_to(ROOT)}:{first}: a function of {last - first + 1} lines, not of {LONGEST} at most"


def main() -> int:
    folders = [ROOT / name for name in ("src", "sim", "inject") if (ROOT / name).is_dir()]
    files = sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in {".h", ".cc", ".c"})
    tests = of_tests(files)
    product = [path for path in files if path not in tests]
    bad = [
        *(problem for path in product for problem in wrong_includes(path)),
        *(problem for path in files for problem in other_openers(path)),
        *unused_edges(product), *left_by_a_merge(), *files_that_are_gone(files), *long_functions(files),
    ]
    for problem in bad:
        print(problem)
    print(f"layers: {len(files)} files, {len(bad)} faults")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
