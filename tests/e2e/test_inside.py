# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch and scikit-learn programs that know from inside what the GPU waited for: account, function, finding."""
import contextlib
import json
import os
import pathlib
import socket
import threading
import time

import pytest

from headroom_e2e import HEADROOM, abstain, causes_of, finding, finding_or_no_core, headroom, idle_cores, share, why

pytest.importorskip("torch", reason="python3-torch is not installed")
PYTHON = "/usr/bin/python3"
JOB = str(pathlib.Path(__file__).with_name("inside_job.py"))


@contextlib.contextmanager
def slow_server(answer, seconds):
    """Answers each request after `seconds`, each connection by itself; asleep, so that it costs no core."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection):
        with contextlib.suppress(OSError), connection:
            while connection.recv(64):
                time.sleep(seconds)
                connection.sendall(answer)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@contextlib.contextmanager
def slow_pipe(path, size, seconds):
    os.mkfifo(path)

    def feed():
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as pipe:
            while True:
                time.sleep(seconds)
                pipe.write(bytes(size))

    threading.Thread(target=feed, daemon=True).start()
    yield path


def ran(tmp_path, scenario, *options, seconds=5):
    """What the job knows of itself, and what `headroom run` wrote about it."""
    done = headroom(tmp_path, "sim", "--gpus", "1xA6000", "--", HEADROOM, "run", f"--json={tmp_path}/why.json",
                    "--output", tmp_path / "run.hrec", "--", PYTHON, JOB, scenario, "--seconds", seconds, *options)
    return json.loads(done.stdout.splitlines()[-1]), json.loads((tmp_path / "why.json").read_text("utf-8"))


def span_seconds(answer):
    return answer["recording"]["duration_ns"] / 1e9


def in_finding(found, function):
    """Whether it names this function: in its title or its first line of evidence."""
    return f"{function} (inside_job.py" in found["title"] + found["evidence"][0]


def seconds_of(answer):
    seconds = {}
    for account in answer["ledger"]["accounts"]:
        seconds[account["cause"]] = round(seconds.get(account["cause"], 0) + account["ns"] / 1e9, 2)
    return seconds


def true_share(truth, answer, *accounts):
    return sum(sum(truth["waited"].get(account, {}).values()) for account in accounts) / span_seconds(answer)


def within_5_points(measured, true, cores, told):
    """Beside other load the reader of stacks is late, too: what it then says is neither right nor wrong."""
    near = pytest.approx(true, abs=0.05)
    if measured != near and cores.others >= 0.3:
        abstain(f"machine busy: others used {cores.others:.2f} of {os.cpu_count()} cores; {measured:.3f} for {true:.3f}")
    assert measured == near, told


def agrees(truth, answer, cores, *accounts):
    """The accounts are within 5 points of the span."""
    assert true_share(truth, answer, *accounts) > 0.05, "it was built to wait for that"
    assert share(answer, "useful") == pytest.approx(truth["kernel_seconds"] / span_seconds(answer), abs=0.03)
    assert share(answer, "unexplained") < 0.05
    said = f"{accounts} of {span_seconds(answer):.2f} s: {seconds_of(answer)}, true {truth}, {vars(cores)}"
    within_5_points(share(answer, *accounts), true_share(truth, answer, *accounts), cores, said)


def test_what_a_loader_does_is_named_and_the_ledger_sums(tmp_path):
    _, answer = ran(tmp_path, "loader_main")
    ledger = answer["ledger"]
    assert sum(account["ns"] for account in ledger["accounts"]) == ledger["budget_ns"]
    assert share(answer, "useful") > 0 and "Y" in answer["recording"]["tiers"]
    lines = headroom(tmp_path, "stacks", tmp_path / "run.hrec").stdout.splitlines()
    assert any("Photos.decode" in line for line in lines)


@pytest.mark.truth
def test_a_loader_in_the_main_process(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "loader_main")
    agrees(truth, answer, cores, "input")
    found = finding_or_no_core(answer, "input_in_main_process", cores)
    assert "Photos.decode (inside_data.py" in found["title"]


@pytest.mark.parametrize("scenario, function", [("few_workers", "Photos.decode"),
                                                ("heavy_transforms", "Augmented.warp")])
@pytest.mark.truth
def test_workers_that_are_too_slow(tmp_path, scenario, function):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, scenario)
    agrees(truth, answer, cores, "input")
    found = finding_or_no_core(answer, "input_too_few_workers", cores)
    assert f"{function} (inside_data.py" in found["title"], "the workers' function"
    assert any("its workers were at then" in line and function in line for line in found["evidence"])


@pytest.mark.truth
def test_more_threads_than_cores(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "oversubscribed")
    agrees(truth, answer, cores, "input")
    found = finding(answer, "cpu_oversubscribed")
    assert found["cause"] and "ManyThreads.project (inside_data.py" in found["title"]


@pytest.mark.truth
def test_a_slow_store(tmp_path):
    with slow_server(bytes(16384), 0.02) as port, idle_cores() as cores:
        truth, answer = ran(tmp_path, "slow_storage", "--port", port)
    agrees(truth, answer, cores, "input")
    found = finding(answer, "slow_storage")
    assert "Remote.read_object (inside_data.py" in found["title"]


@pytest.mark.truth
def test_a_slow_pipe(tmp_path):
    with slow_pipe(tmp_path / "pipe", 16384, 0.012) as path, idle_cores() as cores:
        truth, answer = ran(tmp_path, "slow_pipe", "--path", path)
    agrees(truth, answer, cores, "input")
    found = finding_or_no_core(answer, "slow_storage", cores)
    assert "Piped.read_record (inside_data.py" in found["title"]


@pytest.mark.truth
def test_workers_that_start_anew_in_each_epoch(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "worker_restart", seconds=7)
    agrees(truth, answer, cores, "input")
    found = finding(answer, "epoch_worker_restart")
    assert found["cause"] and "open_shards (inside_data.py" in found["title"]


def phases_by_stacks(answer):
    return {p["name"]: p["total_ns"] / 1e9 for p in answer["phases"] if p["named_by"] == "stacks"}


@pytest.mark.truth
def test_a_synchronous_checkpoint(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "checkpoint")
    agrees(truth, answer, cores, "checkpoint")
    found = finding(answer, "checkpoint_sync")
    assert found["cause"] and "keep (inside_job.py" in found["title"]
    # A phase goes from the first look at torch.save to the last: what follows until the disk has it all is not in it.
    true = sum(truth["waited"]["checkpoint"].values())
    assert 0.3 * true < phases_by_stacks(answer)["checkpoint"] < 1.1 * true


@pytest.mark.truth
def test_validation_on_the_cpu(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "validation")
    agrees(truth, answer, cores, "validation_host")
    found = finding(answer, "validation")
    assert found["cause"] and "validate (inside_job.py" in found["title"]
    true = sum(truth["waited"]["validation_host"].values())
    assert phases_by_stacks(answer)["validation"] == pytest.approx(true, rel=0.3)


@pytest.mark.truth
def test_a_loss_read_in_every_step(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "item", seconds=6)
    # What keeps the GPU waiting is the code that could have overlapped; that it does not is the synchronisation.
    agrees(truth, answer, cores, "host", "sync")
    found = finding_or_no_core(answer, "sync_points", cores)
    assert in_finding(found, "Trainer.update") or in_finding(found, "read_loss")
    assert any("read_loss (inside_job.py" in line for f in answer["findings"] for line in f["evidence"])


@pytest.mark.truth
def test_graphs_built_on_the_host(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "graph", seconds=6)
    agrees(truth, answer, cores, "host")
    found = finding_or_no_core(answer, "host_graph_building", cores)
    assert "build_graph (inside_job.py" in found["title"]


@pytest.mark.truth
def test_logging_over_a_slow_connection(tmp_path):
    with slow_server(b"ok", 0.12) as port, idle_cores() as cores:
        truth, answer = ran(tmp_path, "log_socket", "--port", port)
    agrees(truth, answer, cores, "host")
    found = finding_or_no_core(answer, "logging_upload", cores)
    assert "report_metrics (inside_job.py" in found["title"]


@pytest.mark.truth
def test_imports_that_take_long(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "imports", seconds=3)
    # The start-up begins with the process, the job's own clock with its first line.
    within_5_points(share(answer, "startup"), truth["waited"]["startup"][""] / span_seconds(answer), cores, truth)
    found = finding(answer, "startup_load")
    assert "import lookup_tables" in found["title"] and "import sklearn" in found["evidence"][0]


@pytest.mark.truth
def test_a_thread_that_has_the_interpreter(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "gil", seconds=6)
    # The interpreter is waited for at the end of each wait for a kernel, too.
    agrees(truth, answer, cores, "host", "sync")
    found = finding_or_no_core(answer, "gil_contention", cores)
    assert in_finding(found, "prepare_inputs") and in_finding(found, "compress_history")


@pytest.mark.truth
def test_a_lock_that_another_thread_has(tmp_path):
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "lock")
    agrees(truth, answer, cores, "host")
    found = finding_or_no_core(answer, "gil_contention", cores)
    assert in_finding(found, "look_up") and in_finding(found, "rebuild_cache")


def give_a_rule(tmp_path, rule):
    """A rule of the user for the functions fit_*."""
    rules = tmp_path / ".config" / "headroom" / "families.toml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(f'[[rule]]\n{rule}\nfunction = "fit_*"\n', "utf-8")


@pytest.mark.truth
def test_scikit_learn_between_the_kernels_and_a_family_for_it(tmp_path):
    pytest.importorskip("sklearn", reason="python3-sklearn is not installed")
    with idle_cores() as cores:
        truth, answer = ran(tmp_path, "scikit_learn")
    agrees(truth, answer, cores, "host")
    found = next(f for f in answer["findings"] if "fit_probe (inside_job.py" in f["title"])
    assert {"cpu_oversubscribed", "host_graph_building"} & set(causes_of(found))
    give_a_rule(tmp_path, 'family = "evaluation"\nfile = "inside_job.py"')
    told = why(tmp_path, tmp_path / "run.hrec")
    assert share(told, "validation_host") == pytest.approx(share(answer, "host"), abs=0.05)


def test_a_family_of_the_user_names_what_is_recorded_already(tmp_path):
    pytest.importorskip("sklearn", reason="python3-sklearn is not installed")
    ran(tmp_path, "scikit_learn")
    give_a_rule(tmp_path, 'family = "evaluation"\nfile = "inside_job.py"')
    told = why(tmp_path, tmp_path / "run.hrec")
    assert "fit_probe (inside_job.py" in finding(told, "validation")["title"]
    assert "validation" in phases_by_stacks(told)
    give_a_rule(tmp_path, 'family = "no such"')
    refused = headroom(tmp_path, "why", tmp_path / "run.hrec", check=False)
    assert refused.returncode != 0 and "families.toml" in refused.stderr and "no family" in refused.stderr
