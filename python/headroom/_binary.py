# SPDX-License-Identifier: Apache-2.0
"""The program `headroom`, which reads recordings: where it is, and its answers."""
import os
import shutil
import subprocess
import sysconfig
from typing import Iterable, Iterator, List, Optional

_NAME = "headroom"


class HeadroomError(RuntimeError):
    """The program could not be found, or did not answer. Its own words are the text."""


def find_binary(given: Optional[str] = None) -> str:
    """What was given, else HEADROOM_BINARY, what lies beside this package, among Python's scripts, and on PATH."""
    for asked, by in ((given, "binary="), (os.environ.get("HEADROOM_BINARY"), "HEADROOM_BINARY")):
        if asked:
            found = shutil.which(asked)
            if not found:
                raise HeadroomError("%s%s is no program that can be run" % (by, asked))
            return found
    for path in _places():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(_NAME)
    if not found:
        raise HeadroomError("the program 'headroom' is not on PATH\n  try: set HEADROOM_BINARY to where it is")
    return found


def _places() -> Iterator[str]:
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", _NAME)
    scripts = sysconfig.get_path("scripts")
    if scripts:
        yield os.path.join(scripts, _NAME)


def answer(binary: str, arguments: Iterable[str]) -> bytes:
    """What the program prints."""
    done = subprocess.run([binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    _check(done.returncode, done.stderr)
    return done.stdout


def lines(binary: str, arguments: List[str]) -> Iterator[bytes]:
    """What the program prints, line by line. An error is raised at the end."""
    import tempfile
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen([binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=errors) as program:
            assert program.stdout is not None
            yield from program.stdout
        errors.seek(0)
        _check(program.returncode, errors.read())


def _check(code: int, errors: bytes) -> None:
    if code != 0:
        text = errors.decode("utf-8", "replace").strip()
        raise HeadroomError(text or "headroom ended with %d and said nothing" % code)
