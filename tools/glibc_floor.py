#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which glibc a program or library needs, from the versions of the symbols it takes from others.

    tools/glibc_floor.py FILE [--at-most 2.34] [--only-libc]

--at-most: exit 1, naming the symbols, if it needs a newer one. --only-libc: exit 1 if it needs a shared library that is
not part of glibc. Known traps: std::random_device takes arc4random (2.36).
"""
import argparse
import re
import subprocess
import sys

GLIBC_PARTS = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
               "ld-linux-aarch64.so.1"}
SYMBOL = re.compile(r"\*UND\*.*\(?GLIBC_([0-9.]+)\)?\s+(\S+)$")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


def needed_symbols(path):
    """(version, name) of every symbol that glibc must bring."""
    symbols = set()
    for line in output("objdump", "-T", path).splitlines():
        found = SYMBOL.search(line)
        if found:
            symbols.add((tuple(int(part) for part in found[1].split(".")), found[2]))
    return sorted(symbols)


def needed_libraries(path):
    return re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--at-most", metavar="VERSION")
    parser.add_argument("--only-libc", action="store_true")
    options = parser.parse_args()
    symbols, libraries = needed_symbols(options.file), needed_libraries(options.file)
    if not symbols:
        sys.exit(f"{options.file}: takes no versioned symbol from glibc; is it a dynamically linked program?")
    floor = symbols[-1][0]
    wrong = []
    if options.at_most:
        limit = tuple(int(part) for part in options.at_most.split("."))
        wrong += [f"{name} needs glibc {'.'.join(map(str, version))}" for version, name in symbols if version > limit]
        # Asked of the dynamic linker, not of a symbol: packed relative relocations came with 2.36.
        asked = set(re.findall(r"GLIBC_ABI_\w+", output("objdump", "-p", options.file)))
        wrong += [f"{name} needs glibc 2.36" for name in sorted(asked)]
    if options.only_libc:
        wrong += [f"needs {library}" for library in libraries if library not in GLIBC_PARTS]
    print(f"{options.file}: glibc {'.'.join(map(str, floor))}, libraries {' '.join(libraries)}")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
