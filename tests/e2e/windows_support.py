# SPDX-License-Identifier: Apache-2.0
"""What the tests on examples/windows share: the trainer of case 002, as a batch and as written by hand."""
import json
import pathlib
import shutil

from batch_support import journal
from headroom_e2e import HEADROOM, ROOT, headroom

PYTHON = "/usr/bin/python3"  # Debian's, which has python3-sklearn
EXAMPLE = ROOT / "examples" / "windows"
BY_HAND = [PYTHON, EXAMPLE / "by_hand.py"]


def task_file(tmp_path, *arguments, symbols=None, script="train_window.py", change=()):
    """A copy of examples/windows in tmp_path, of the first `symbols` only, with `arguments` for the trainer."""
    for name in ("train_window.py", "windows.env"):
        shutil.copy(EXAMPLE / name, tmp_path)
    text = (EXAMPLE / "windows.toml").read_text()
    more = "".join(f', "{word}"' for word in arguments)
    changes = [('"models/{task}"]', f'"models/{{task}}"{more}]'), ('["/usr/bin/python3", "train_window.py"',
                                                                  f'["/usr/bin/python3", "{script}"'), *change]
    if symbols:
        begin = text.index("symbol = [") + len("symbol = [")
        end = text.index("]", begin)
        changes.append((text[begin:end], ", ".join(text[begin:end].split(",")[:symbols])))
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is not once in windows.toml"
        text = text.replace(old, new)
    path = tmp_path / "windows.toml"
    path.write_text(text)
    return path


def batch(tmp_path, tasks, *options, gpus="2xA6000", sim=(), code=0, timeout=180):
    """`headroom batch` of a task file in a virtual box; what it said, with its JSON as .answer."""
    box = ["--gpus", gpus] if gpus else []
    done = headroom(tmp_path, "sim", *box, *sim, "--", HEADROOM, "batch", tasks, "--json", *options,
                    check=False, timeout=timeout)
    assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    done.answer = json.loads(done.stdout) if done.stdout else None
    return done


def artefacts(folder):
    """window -> (model.json as it is, metadata.json without the field "run")."""
    found = {}
    for window in pathlib.Path(folder).iterdir():
        metadata = json.loads((window / "metadata.json").read_text())
        del metadata["run"]
        found[window.name] = ((window / "model.json").read_bytes(), metadata)
    return found


def trained_on(folder):
    """window -> UUID of the GPU that its process itself says it used, None for the CPU."""
    return {window.name: json.loads((window / "metadata.json").read_text())["run"]["gpu"]
            for window in pathlib.Path(folder).iterdir()}


def attempts(folder):
    """What the journal knows of each attempt on a GPU: (task, UUID, begin, end), times in seconds."""
    rows = journal(folder, "SELECT t.name, a.facts, a.start, a.end FROM attempts a JOIN tasks t ON t.key = a.task")
    return [(name, json.loads(facts)["gpu_uuids"][0], begin / 1e9, end / 1e9) for name, facts, begin, end in rows]


def concurrency(of_attempts):
    """Mean number of them under way, from the first start to the last end."""
    span = max(end for *_, end in of_attempts) - min(begin for _, _, begin, _ in of_attempts)
    return sum(end - begin for _, _, begin, end in of_attempts) / span
