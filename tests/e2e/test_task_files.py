# SPDX-License-Identifier: Apache-2.0
"""What goes into `headroom batch`, end to end: every form runs the commands that it says."""
import json
import subprocess

import pytest
from headroom_e2e import HEADROOM, ROOT, environment, headroom

NO_GPU = ("--gpus", "none", "--no-record")


def lines(path):
    return sorted(path.read_text(encoding="utf-8").splitlines())


def test_arguments_reach_the_task_unchanged(tmp_path):
    odd = ["a b", "it's", '"$HOME"', "{x}", "*", "-n"]
    headroom(tmp_path, "batch", *NO_GPU, "--", "sh", "-c", 'printf "%s\\n" "$1" >> out', "x", "{}", ":::", *odd)
    assert lines(tmp_path / "out") == sorted(odd)


def test_a_table_with_a_command_and_a_shell_line(tmp_path):
    (tmp_path / "p.csv").write_text('name,note\na,"x, ""y"""\nb,$(touch evil)\n', encoding="utf-8")
    headroom(tmp_path, "batch", "p.csv", *NO_GPU, "--shell", "--command", "echo {name} '{note}' >> out")
    assert lines(tmp_path / "out") == ['a x, "y"', "b $(touch evil)"]
    assert not (tmp_path / "evil").exists()


def test_lines_on_standard_input(tmp_path):
    text = "# comment\necho one {gpu_idx} > 1\n\nsh -c 'echo two | tr a-z A-Z > 2'\n"
    done = subprocess.run([HEADROOM, "batch", *NO_GPU, "-"], input=text, cwd=tmp_path, env=environment(tmp_path),
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "1").read_text() == "one {gpu_idx}\n"
    assert (tmp_path / "2").read_text() == "TWO\n"


def test_a_task_file_with_environment_files_and_order(tmp_path):
    (tmp_path / "base.env").write_text("A='from file' # comment\nB=base\n", encoding="utf-8")
    (tmp_path / "t.toml").write_text("""
[[task]]
name = "second_{n}"
command = "echo second $A $B {n} >> out"
shell = true
env_file = "base.env"
env = { B = "task" }
after = ["first"]
[task.grid]
n = { from = 1, to = 3 }
[[task]]
name = "first"
command = ["sh", "-c", "echo first >> out"]
""", encoding="utf-8")
    answer = json.loads(headroom(tmp_path, "batch", "t.toml", *NO_GPU, "--json").stdout)
    assert answer["tasks"]["succeeded"] == 4
    said = (tmp_path / "out").read_text().splitlines()
    assert said[0] == "first"
    assert sorted(said[1:]) == [f"second from file task {n}" for n in (1, 2, 3)]


@pytest.mark.parametrize("text, error", [
    ('[task]\ncommand = ["true"]\nretrys = 2\n',
     "headroom: w.toml:3:1: unknown key 'retrys' in [task]\n  did you mean 'retries'?\n"),
    ('[task]\ncommand = ["t", "{symbl}"]\nname = "{symbol}"\n[task.grid]\nsymbol = ["A"]\n',
     "headroom: w.toml:2:11: command: unknown placeholder {symbl}\n  did you mean {symbol}?\n"),
    ('[[task]]\nname = "a"\ncommand = ["true"]\nafter = ["b"]\n[[task]]\nname = "b"\ncommand = ["true"]\nafter = ["a"]\n',
     None)])
def test_a_wrong_file_is_refused_before_anything_starts(tmp_path, text, error):
    (tmp_path / "w.toml").write_text(text, encoding="utf-8")
    done = headroom(tmp_path, "batch", "w.toml", *NO_GPU, check=False)
    assert done.returncode == 2
    assert done.stderr == error if error else "w.toml:" in done.stderr
    assert not (tmp_path / "w.batch").exists()


def test_a_second_pin_is_refused_or_rewritten(tmp_path):
    command = ("sim", "--gpus", "2xA6000", "--", HEADROOM, "batch", "--no-record", "--dry-run")
    task = ("--", "train", "--gpu-device-id", "{}", ":::", "1")
    done = headroom(tmp_path, *command, *task, check=False)
    assert done.returncode == 2
    assert "pins a GPU itself" in done.stderr and "--gpu-device-id {gpu}" in done.stderr
    plan = headroom(tmp_path, *command, "--second-pin", "rewrite", *task).stdout
    assert "--gpu-device-id" in plan and "{gpu}" in plan


def test_the_windows_of_the_examples_are_252_tasks(tmp_path):
    plan = headroom(tmp_path, "batch", ROOT / "examples/windows/windows.toml", "--dry-run", "--gpus", "none").stdout
    assert plan.startswith("252 tasks")
