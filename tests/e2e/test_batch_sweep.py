# SPDX-License-Identifier: Apache-2.0
"""Sweeps: lists that grow, parameters and what came of them, a part of a batch."""
import csv
import io
import json

from batch_support import answer, end, journal, lines, run, start, wait_until
from headroom_e2e import HEADROOM

SIMPLE = ("--gpus", "none", "--no-record")


def folders(tmp_path):
    return sorted(path for path in tmp_path.iterdir() if path.suffix == ".batch")


def batch(tmp_path, *words, options=(), **more):
    return answer(tmp_path, *SIMPLE, *options, "--", *words, **more)


def test_a_longer_list_goes_on_and_another_command_does_not(tmp_path):
    command = ["sh", "-c", "echo {} >> out", ":::"]
    assert batch(tmp_path, *command, "1", "2", "3", "4")["tasks"]["succeeded"] == 4
    done = run(tmp_path, *SIMPLE, "--", *command, "1", "2", "3", "4", "5")
    assert "4 of 5 succeeded in earlier runs" in done.stderr
    assert "5 succeeded (4 in earlier runs)" in done.stdout
    assert sorted(lines(tmp_path / "out")) == ["1", "2", "3", "4", "5"]
    assert len(folders(tmp_path)) == 1
    assert batch(tmp_path, "sh", "-c", "echo {} >> other", ":::", "1")["tasks"]["succeeded_earlier"] == 0
    assert batch(tmp_path, "sh", "-c", "echo {1} >> out", ":::", "1", ":::", "2")["tasks"]["succeeded_earlier"] == 0
    assert len(folders(tmp_path)) == 3


def test_the_table_has_parameters_metrics_and_time(tmp_path):
    done = run(tmp_path, "--gpus", "none", "--metric", "loss=loss=([0-9.]+)", "-o", "b.hrec", "--", "sh", "-c",
               'test {2} = 7 && exit 1; echo loss={1}{2}', ":::", "9", "10", ":::", "3", "7", code=1)
    assert "2 succeeded, 2 failed" in done.stdout
    for where in ((), ("--recording", "b.hrec")):
        rows = list(csv.DictReader(io.StringIO(run(tmp_path, "table", "--csv", "--sort", "loss", *where).stdout)))
        assert [row["task"] for row in rows] == ["9_3", "10_3", "9_7", "10_7"]
        assert [row["loss"] for row in rows] == ["93", "103", "", ""]
        assert [row["{1}"] for row in rows] == ["9", "10", "9", "10"]
        assert all(float(row["seconds"]) >= 0 and row["gpu_memory_bytes"] == "" for row in rows)
        assert rows[3]["state"] == "failed"
    text = run(tmp_path, "table", "--sort", "{1}", "--reverse").stdout.splitlines()
    assert text[0].split() == ["task", "{1}", "{2}", "loss", "time", "GPU", "memory", "state"]
    assert [line.split()[0] for line in text[1:]] == ["10_3", "10_7", "9_3", "9_7"]
    wrong = run(tmp_path, "table", "--sort", "los", code=2)
    assert "no task has 'los'" in wrong.stderr and "loss" in wrong.stderr
    shown = json.loads(run(tmp_path, "show", "9_3", "--json").stdout)["attempts"][0]
    assert shown["parameters"] == {"1": "9", "2": "3"}
    assert "{1}=9 {2}=3" in run(tmp_path, "show", "9_3").stdout


def test_the_table_has_how_metrics_went(tmp_path):
    run(tmp_path, "--gpus", "none", "-o", "b.hrec", "--", "sh", "-c",
        'for i in 1 2 3; do echo "Epoch $i/3 | loss 0.{1}$((5 - i)) | val_acc 0.9$i"; done', ":::", "3", "4")
    for where in ((), ("--recording", "b.hrec")):
        rows = json.loads(run(tmp_path, "table", "--json", *where).stdout)["tasks"]
        for row, begin in zip(rows, ("0.3", "0.4")):
            went = {metric["name"]: metric for metric in row["metric_values"]}
            assert row["metrics"] == {"loss": float(begin + "2"), "val_acc": 0.93}
            assert [went["loss"][what] for what in ("first", "last", "best")] == [float(begin + end) for end in "422"]
            assert went["val_acc"]["best"] == 0.93
    assert "loss,loss:first,loss:best,val_acc," in run(tmp_path, "table", "--csv").stdout


def test_tasks_that_changed_are_listed_once(tmp_path):
    tasks = tmp_path / "t.toml"
    for version in ("a", "b"):
        tasks.write_text(f'[task]\ncommand = ["echo", "{version}", "{{x}}"]\nname = "t{{x}}"\n[task.grid]\nx = [1, 2]\n',
                         encoding="ascii")
        run(tmp_path, *SIMPLE, tasks)
    shown = run(tmp_path, "show").stdout
    assert "2 tasks: 2 succeeded" in shown and "2 tasks of earlier runs" in shown
    assert "4 tasks: 4 succeeded" in run(tmp_path, "show", "--all").stdout
    assert len(json.loads(run(tmp_path, "table", "--json").stdout)["tasks"]) == 2


def test_another_environment_is_told(tmp_path):
    tasks = tmp_path / "t.toml"

    def write(value):
        tasks.write_text(f'[task]\ncommand = ["true"]\nenv = {{ FOO = "{value}" }}\n', encoding="ascii")

    write("1")
    run(tmp_path, *SIMPLE, tasks)
    assert "environment" not in run(tmp_path, *SIMPLE, tasks).stderr
    write("2")
    again = run(tmp_path, *SIMPLE, tasks)
    assert "1 task that succeeded earlier did so with another environment" in again.stderr
    assert "--rerun" in again.stderr
    assert "runs again, as asked" in run(tmp_path, *SIMPLE, "--rerun", "*", tasks).stderr
    assert "environment" not in run(tmp_path, *SIMPLE, tasks).stderr


def test_a_part_of_a_batch(tmp_path):
    command = ["sh", "-c", "echo {} >> out", ":::", "a1", "a2", "b1"]
    assert batch(tmp_path, *command, options=("--only", "a*"))["tasks"]["total"] == 2
    assert sorted(lines(tmp_path / "out")) == ["a1", "a2"]
    assert batch(tmp_path, *command)["tasks"]["succeeded_earlier"] == 2
    batch(tmp_path, *command, options=("--rerun", "a2"))
    assert lines(tmp_path / "out").count("a2") == 2 and lines(tmp_path / "out").count("a1") == 1
    wrong = run(tmp_path, *SIMPLE, "--only", "c*", "--", *command, code=1)
    assert "there is no task 'c*'" in wrong.stderr


def test_what_goes_on_is_named_only_where_it_does_something(tmp_path):
    command = [*SIMPLE, "--", "sh", "-c", "test -e go || exit 1", ":::", "a1", "a2", "b"]
    run(tmp_path, *command, code=1)
    (tmp_path / "go").touch()
    run(tmp_path, "--only", "a*", *command)
    left = run(tmp_path, "status").stdout
    assert "1 failed, 2 succeeded" in left
    assert "Go on with: headroom batch --gpus=none --no-record -- sh -c" in left, "and not --only"
    assert "last run finished" in left
    run(tmp_path, *command)
    assert "Go on with" not in run(tmp_path, "status").stdout


def test_quiet_says_only_what_is_wrong(tmp_path):
    done = run(tmp_path, *SIMPLE, "-q", "--", "true", ":::", "1")
    assert (done.stdout, done.stderr) == ("", "")
    again = run(tmp_path, *SIMPLE, "-q", "--", "true", ":::", "1")
    assert (again.stdout, again.stderr) == ("", "")
    wrong = run(tmp_path, "--gpus", "none", "-q", "--", "sh", "-c", "exit {}", ":::", "0", "3", code=1)
    assert "1 succeeded, 1 failed" in wrong.stdout and "computing" not in wrong.stdout


def test_tasks_without_gpus_share_only_cores_with_another_batch(tmp_path):
    process = sleepers(tmp_path, "a1")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    [first] = folders(tmp_path)
    said = run(tmp_path, *SIMPLE, "--", "true", ":::", "1").stderr
    assert "they share its cores" in said, said
    run(tmp_path, "stop", "--now", first)
    end(process, 130)


def sleepers(tmp_path, *names):
    return start(tmp_path, [HEADROOM, "batch", *SIMPLE, "--slots", "1", "--grace", "300ms", "--", "sh", "-c",
                            "echo {} >> out; sleep 30", ":::", *names])


def test_cancel_takes_patterns(tmp_path):
    process = sleepers(tmp_path, "a1", "a2", "b1", "b2")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    assert run(tmp_path, "cancel", "b*", "a2").stdout == "Cancelled 3 tasks.\n"
    assert "have ended" in run(tmp_path, "cancel", "b*", code=1).stderr
    assert "name tasks, or give --all" in run(tmp_path, "cancel", code=2).stderr
    assert "there is no task 'c'" in run(tmp_path, "cancel", "c", code=1).stderr
    assert run(tmp_path, "cancel", "--all").stdout == "Cancelled 1 task.\n"
    assert "4 cancelled" in end(process, 1)


def test_stop_from_another_terminal(tmp_path):
    process = sleepers(tmp_path, "a1", "a2")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    assert run(tmp_path, "stop").stdout == "Nothing more is started; 1 running task may end (--now stops it).\n"
    assert "being stopped" in run(tmp_path, "stop", "--now").stdout
    assert "2 left to run" in end(process, 130)
    assert journal(folders(tmp_path)[0], "SELECT end_reason FROM runs") == [("stopped",)]
    assert "no batch is running" in run(tmp_path, "stop", code=1).stderr


def states(tmp_path):
    return [line.split()[-1] for line in run(tmp_path, "table").stdout.splitlines()[1:]]


def test_table_and_status_know_what_runs_and_what_was_interrupted(tmp_path):
    process = sleepers(tmp_path, "a1", "a2")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    rows = json.loads(run(tmp_path, "table", "--json").stdout)["tasks"]
    assert [row["state"] for row in rows] == ["running", "ready"] and rows[0]["seconds"] is not None
    run(tmp_path, "cancel", "a2")
    assert states(tmp_path) == ["running", "cancelled"]
    run(tmp_path, "stop", "--now")
    end(process, 130)
    assert states(tmp_path) == ["interrupted", "cancelled"]
    assert "2 tasks: 1 cancelled, 1 interrupted" in run(tmp_path, "status").stdout
    process = sleepers(tmp_path, "a2", "a1")
    wait_until(lambda: lines(tmp_path / "out") == ["a1", "a2"], "the cancelled task")
    process.kill()
    process.wait()
    wait_until(lambda: states(tmp_path) == ["interrupted"] * 2, "the guardian")


def test_further_tasks_for_a_running_batch(tmp_path):
    process = sleepers(tmp_path, "a1")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    said = run(tmp_path, "add", "--", "sh", "-c", "echo {} >> out", ":::", "b1", "b2").stdout
    assert said.startswith("Added 2 tasks. They belong to this run")
    names = [name for (name,) in journal(folders(tmp_path)[0], "SELECT name FROM tasks ORDER BY key")]
    assert names == ["a1", "b1", "b2"]
    assert "2 it had already" in run(tmp_path, "add", "--", "sh", "-c", "echo {} >> out", ":::", "b1", "b2").stdout
    taken = run(tmp_path, "add", "--", "sh", "-c", "echo other {}", ":::", "b1", code=1)
    assert "has a task 'b1', with another command" in taken.stderr
    run(tmp_path, "cancel", "a1")
    assert "3 tasks" in (output := end(process, 1)) and "2 succeeded" in output
    assert lines(tmp_path / "out") == ["a1", "b1", "b2"]


def test_what_is_added_has_the_columns_of_the_tasks_that_are_there(tmp_path):
    (tmp_path / "tasks.csv").write_text("lr\n0.1\n")
    process = start(tmp_path, [HEADROOM, "batch", *SIMPLE, "--slots", "1", "--grace", "300ms", "--command",
                               "sh -c 'echo {lr} >> out; sleep 30'", "tasks.csv"])
    wait_until(lambda: lines(tmp_path / "out") == ["0.1"], "the first task")
    run(tmp_path, "add", "--", "true", "--lr", "{}", ":::", "0.5")
    rows = list(csv.DictReader(io.StringIO(run(tmp_path, "table", "--csv").stdout)))
    assert [row["lr"] for row in rows] == ["0.1", "0.5"]
    assert "{1}" not in rows[0]
    run(tmp_path, "cancel", "--all")
    end(process, 1)


def test_a_resume_says_that_it_leaves_out_what_was_added(tmp_path):
    process = sleepers(tmp_path, "a1")
    wait_until(lambda: lines(tmp_path / "out") == ["a1"], "the first task")
    run(tmp_path, "add", "--", "sh", "-c", "echo {} >> out", ":::", "b1", "b2")
    process.kill()
    process.wait()
    wait_until(lambda: states(tmp_path)[0] == "interrupted", "the guardian")
    process = sleepers(tmp_path, "a1")
    wait_until(lambda: lines(tmp_path / "out") == ["a1", "a1"], "the first task again")
    run(tmp_path, "cancel", "a1")
    output = end(process, 1)
    assert "2 tasks that batch add brought to an earlier run are left out: this command does not name them" in output
    assert "batch add brings them again while it runs" in output and lines(tmp_path / "out") == ["a1", "a1"]


def test_names_keep_their_letters(tmp_path):
    batch(tmp_path, "echo", "{}", ":::", "größe", "模型/λ", "a\nb")
    names = [name for (name,) in journal(folders(tmp_path)[0], "SELECT name FROM tasks ORDER BY key")]
    assert names == ["größe", "模型-λ", "a-b"]
    logs = sorted(path.name.split("-", 1)[1] for path in (folders(tmp_path)[0] / "logs").iterdir())
    assert logs == sorted(f"{name}.log" for name in names)


def test_words_of_a_dry_run(tmp_path):
    plan = run(tmp_path, *SIMPLE, "--dry-run", "--", "echo", "{%}", "{}", ":::", "x y").stdout
    assert "1 task in 1 group, without GPUs" in plan
    assert "echo {%} 'x y'" in plan
    wrong = run(tmp_path, "--gpus", "all", "--no-record", "--", "true", code=1)
    assert "--gpus all" in wrong.stderr and "--gpus 0,1" in wrong.stderr
