# SPDX-License-Identifier: Apache-2.0
"""headroom import: foreign logs become recordings, and what was lost on the way is said."""
import datetime
import json
import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests" / "logs"
HEADROOM = pathlib.Path(os.environ["HEADROOM_BUILD"]).resolve() / "src" / "cli" / "headroom"
HEADER = "timestamp, index, utilization.gpu [%], power.draw [W]\n"


@pytest.fixture
def headroom(tmp_path):
    def run(*arguments):
        environment = dict(os.environ, XDG_STATE_HOME=str(tmp_path / "state"), COLUMNS="80")
        return subprocess.run([str(HEADROOM), *map(str, arguments)], cwd=tmp_path, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return run


def losses(answer):
    return {loss["what"]: loss["count"] for loss in answer["losses"]}


@pytest.mark.parametrize("name, origin, rows, devices", [
    ("small_gpu_4050.csv", "import:nvidia-smi", 90, 1),
    ("epochs_a100.dmon", "import:dmon", 1260, 1),
    ("two_gpus_103_rows.csv", "import:monitor-csv", 103, 2),
])
def test_each_format_becomes_a_recording_that_exports_again(headroom, tmp_path, name, origin, rows, devices):
    done = headroom("import", LOGS / name, "--output", "log.hrec", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == "headroom.import/1"
    assert answer["origin"] == origin
    assert answer["rows"] == rows
    assert len(answer["devices"]) == devices
    assert (tmp_path / "log.hrec").stat().st_size > 0
    again = headroom("import", "log.hrec", "--output", "copy.hrec", "--json")  # what was written reads the same
    assert again.returncode == 0, again.stderr
    copy = json.loads(again.stdout)
    for key in ("origin", "rows", "devices", "losses", "start_ns", "end_ns", "interval_ns"):
        assert copy[key] == answer[key], key


def test_the_recording_goes_to_the_shelf_and_is_the_last(headroom, tmp_path):
    done = headroom("import", LOGS / "small_gpu_4050.csv")
    assert done.returncode == 0, done.stderr
    path = pathlib.Path(done.stdout.strip().splitlines()[-1])
    assert path.parent == tmp_path / "state" / "headroom"
    assert done.stdout.startswith("90 rows of 1 GPU over ")
    last = headroom("import", "last", "--output", "last.hrec", "--json")
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout)["rows"] == 90


def test_missing_rows_are_counted(headroom):
    answer = json.loads(headroom("import", LOGS / "two_gpus_103_rows.csv", "-o", "x.hrec", "--json").stdout)
    assert losses(answer)["missing_row"] == 55  # 158 fit 390 s at 5 s on two GPUs
    text = headroom("import", LOGS / "two_gpus_103_rows.csv", "-o", "y.hrec").stdout
    assert "missing_row (55): 55 of 158 rows expected" in text
    assert all(len(line) <= 80 or "/" in line for line in text.splitlines())


def test_oddities_are_losses_and_no_failure(headroom, tmp_path):
    log = tmp_path / "odd.csv"
    log.write_text(HEADER +
                   "2025/11/05 21:13:00.100, 0, 5 %, 30.00 W\n" + HEADER +
                   "2025/11/05 21:13:01.100, 0, 130 %, [N/A]\n"
                   "Failed to initialize NVML: Unknown Error\n"
                   "2025/11/05 21:13:02.100, 0, 7 %, 31.00 W\n"
                   "2025/11/05 21:13:02.100, 0, 8 %, 32.00 W\n"
                   "2025/11/05 21:13:04.100, 0, 9 %\n"
                   "2025/11/05 21:13:05.100, 0, 9 %, 3")
    done = headroom("import", log, "-o", "odd.hrec", "--json")
    assert done.returncode == 0, done.stderr
    counted = losses(json.loads(done.stdout))
    for what in ("repeated_header", "value_out_of_range", "interleaved_message", "duplicate_timestamp", "short_row",
                 "truncated_last_line", "missing_row", "assumed_time_zone"):
        assert counted.get(what, 0) >= 1, what


@pytest.mark.parametrize("content, what, hint", [
    (b"", "empty", "import --help"),
    (b"\x7fELF\x00\x00\x01", "a program", "headroom run -- bad.csv"),
    (b"\x1f\x8b\x08\x00", "packed data was cut", ""),
    (b"name,age\nann,5\n", "no column is a reading of a GPU", "--columns NAME="),
    (b"timestamp, utilization.gpu [%]\nyesterday, 5 %\n", "bad.csv:2:1: cannot read 'yesterday'", "can be used"),
    (b"2025/11/05 21:13:00.100, 0, 5 %\n", "bad.csv:1: there is no header", "--columns"),
    (b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "NVIDIA-SMI has failed", ""),
])
def test_what_cannot_be_read_is_a_usage_error_with_the_next_step(headroom, tmp_path, content, what, hint):
    (tmp_path / "bad.csv").write_bytes(content)
    done = headroom("import", "bad.csv", "-o", "bad.hrec")
    assert done.returncode == 2
    assert done.stdout == ""
    assert what in done.stderr and hint in done.stderr
    assert done.stderr.startswith("headroom: ")
    assert not (tmp_path / "bad.hrec").exists()


def test_a_missing_file_and_an_existing_output_are_said(headroom, tmp_path):
    missing = headroom("import", "nothing.csv", "-o", "x.hrec")
    assert missing.returncode == 1 and "nothing.csv" in missing.stderr
    (tmp_path / "there.hrec").write_text("mine")
    exists = headroom("import", LOGS / "small_gpu_4050.csv", "-o", "there.hrec")
    assert exists.returncode == 1 and "there.hrec" in exists.stderr
    assert (tmp_path / "there.hrec").read_text() == "mine"


def test_options_say_what_the_log_does_not(headroom, tmp_path):
    log = tmp_path / "bare.csv"
    log.write_text("23:59:59, 5, 30\n00:00:00, 6, 31\n")
    refused = headroom("import", log, "-o", "a.hrec", "--columns", "timestamp,utilization.gup,power.draw")
    assert refused.returncode == 2 and "did you mean 'utilization.gpu'" in refused.stderr
    done = headroom("import", log, "-o", "b.hrec", "--json", "--columns", "timestamp,utilization.gpu,power.draw",
                    "--start-date", "2025-11-05", "--utc-offset", "+05:30", "--device-name", "RTX 4050")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["end_ns"] == 1_762_367_400 * 10**9  # 2025-11-06 00:00:00 +05:30
    assert answer["devices"][0]["name"] == "RTX 4050"
    assert headroom("import", log, "--utc-offset", "five").returncode == 2


def test_the_phases_that_a_log_names_are_those_of_the_report(headroom, tmp_path):
    rows = ["timestamp,gpu_index,phase,gpu_util_%,mem_used_mb"]
    for i in range(300):
        phase = "eval" if i % 100 >= 75 else "train"
        rows += [f"{1_770_000_000 + i},{gpu},{phase},{90 if phase == 'eval' else 14},20000" for gpu in range(2)]
    (tmp_path / "phases.csv").write_text("\n".join(rows) + "\n")
    text = headroom("why", "phases.csv").stdout
    assert "Phases, as the log names them" in text and "in the phase train" in text
    assert "phases that recur" not in text and "name the phases" not in text
    answer = json.loads(headroom("why", "phases.csv", "--json").stdout)
    shares = {(p["device"], p["name"]): p["gpu_util_ratio"] for p in answer["phases"]}
    for gpu in range(2):
        assert shares[f"gpu{gpu}", "train"] == pytest.approx(0.14, abs=0.005)
        assert shares[f"gpu{gpu}", "eval"] == pytest.approx(0.9, abs=0.005)


def test_the_sample_logs_are_what_their_script_writes(tmp_path):
    script = (LOGS / "make_logs.py").read_text()
    (tmp_path / "make_logs.py").write_text(script)
    subprocess.run(["/usr/bin/python3", str(tmp_path / "make_logs.py")], check=True, timeout=60)
    for path in sorted(LOGS.iterdir()):
        if path.suffix in (".csv", ".dmon"):
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_what_came_once_is_no_phase_that_recurs(headroom, tmp_path):
    once, dice = ["timestamp, utilization.gpu [%]"], ["timestamp, utilization.gpu [%]"]
    for i in range(240):
        at = f"2025/03/04 {9 + i // 60:02}:{i % 60:02}:00.100"
        once.append(f"{at}, {0 if i < 60 else 76 + i * 7 % 15} %")
        dice.append(f"{at}, {100 if i * i * 31 % 101 < 40 else 0} %")
    for name, rows in (("once.csv", once), ("dice.csv", dice)):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
        done = headroom("why", name)
        assert done.returncode == 0, done.stderr
        assert "phases that recur" not in done.stdout, done.stdout


def test_the_latency_of_launches_is_no_wait_for_an_event(headroom, tmp_path):
    events = []
    for i in range(400):
        at = 1000 + 7 * i
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": at,
                       "dur": 5, "args": {"correlation": i + 1}})
        events.append({"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": at + 5.5, "dur": 3,
                       "args": {"device": 0, "stream": 7, "correlation": i + 1}})
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    text = headroom("why", "trace.json", "--full").stdout
    assert "begin a little after their launches" in text and "another stream" not in text


def test_what_a_split_gpu_did_report_is_told(headroom, tmp_path):
    rows = ["timestamp, index, mig.mode.current, utilization.gpu [%], memory.used [MiB], power.draw [W]"]
    rows += [f"2025/04/02 06:00:{i:02}.100, 0, Enabled, [N/A], 18842 MiB, 150.00 W" for i in range(30)]
    (tmp_path / "mig.csv").write_text("\n".join(rows) + "\n")
    text = " ".join(headroom("why", "mig.csv").stdout.split())
    assert "what it did report: power 150 W on average" in text and "18.4 GiB at most" in text


def box(second):
    return (f"Mon Feb  3 10:00:{second:02} 2025\n| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 |\n"
            "|   0  NVIDIA L40S                 On  | 00000000:4A:00.0 Off |                    0 |\n"
            f"| N/A   47C    P0        180W /  350W  |  20000MiB / 46068MiB |     {90 if second % 20 else 3}%      Default |\n")


def rows(header, row):
    return header + "\n" + "".join(row(second) + "\n" for second in range(60))


# What people have, with the options that its first answer asks for.
FILES = {
    "half clock.csv": (rows("time,gpu,gpu_util_percent,sm_clock_mhz,max_sm_clock_mhz,SwPowerCap",
                            lambda s: f"2025-02-03 10:00:{s:02},0,97,705,1410,True"), ""),
    "hosts.csv": (rows("time,node,device,gpu_util_percent",
                       lambda s: f"2025-02-03 10:00:{s:02},node{s % 2},{s % 2},{s % 2 * 50 + 20}"), ""),
    "amd.csv": (rows("timestamp,gpu,power_usage,gfx,gfx_clock",
                     lambda s: f"17416000{s:02},0,412,{97 if s % 10 else 0},1834"), ""),
    "box.log": ("".join(box(s) for s in range(60)), ""),
    "untimed.csv": (rows("gpu_util,mem_used_mb", lambda s: f"{s},4000"), "--log-interval 1s"),
    "dates.csv": ("timestamp,gpu_util\n02-11-2025 10:00:00,20\n03-12-2025 10:00:01,30\n", "--date-order day-first"),
    "panel.csv": (rows("Time,gpu0,gpu1", lambda s: f"2025-02-03 10:00:{s:02},{s},40"),
                  "--columns gpu0=gpu0_util,gpu1=gpu1_util"),
    "threads.csv": (rows("time,thread,gpu_util_percent",
                         lambda s: "\n".join(f"2025-02-03 10:{s:02}:00,{gpu},{50 + gpu}" for gpu in (0, 1))),
                    "--columns thread=index"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_next_command_runs_on_the_log_that_it_was_said_of(headroom, tmp_path, name):
    text, option = FILES[name]
    (tmp_path / name).write_text(text)
    words = ["why", name]
    if option:
        refused = headroom(*words)
        assert refused.returncode == 2
        assert option in refused.stderr.replace("\n", " "), refused.stderr
        words += option.split()
    asked = [words, [*words, "--full"]] + ([] if option else [["plan", name]])  # plan takes no such options
    for arguments in asked:
        done = headroom(*arguments)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        first = next((i for i, line in enumerate(lines) if line.startswith("Next: ")), len(lines))
        assert first < len(lines) or arguments[0] == "plan", done.stdout  # which has none where nothing is to be done
        commands = [line.removeprefix("Next:").strip() for line in lines[first:]]
        assert all(command.startswith("headroom ") for command in commands), commands
        for command in commands:
            again = headroom(*shlex.split(command)[1:])
            assert again.returncode == 0, f"{command}: {again.stderr}"


@pytest.mark.parametrize("options, date", [([], "20 November 2021"), (["--date-order", "year-first"], "21 November 2020")])
def test_which_number_of_a_short_date_is_the_year_can_be_said(headroom, tmp_path, options, date):
    text = "timestamp,gpu_util\n" + "".join(f"20/11/21 10:00:{s:02},{s}\n" for s in range(20))
    (tmp_path / "short.csv").write_text(text)
    done = headroom("import", "short.csv", "--output", "short.hrec", "--json", *options)
    assert done.returncode == 0, done.stderr
    start = datetime.datetime.fromtimestamp(json.loads(done.stdout)["start_ns"] / 1e9, datetime.timezone.utc)
    assert f"{start.day} {start:%B} {start.year}" == date
    assumed = [loss for loss in json.loads(done.stdout)["losses"] if loss["what"] == "assumed_date_order"]
    assert len(assumed) == (0 if options else 1)


def log_of(rows, line):
    return "".join(line(round_) for round_ in range(rows))


@pytest.mark.parametrize("name, text, devices, busy", [
    ("rows_below_a_time.log", log_of(30, lambda i: f"Sun Mar 30 01:{i:02}:00 CET 2025\nutilization.gpu [%], memory.used [MiB]\n"
                                     f"90 %, {200 + i} MiB\n40 %, {300 + i} MiB\n"), 2, [0.9, 0.4]),
    ("hosts_in_names.csv", "Time,node01_gpu0_util,node02_gpu0_util\n" +
     log_of(30, lambda i: f"2025-06-09 04:{i:02}:00,90,40\n"), 2, [0.9, 0.4]),
    ("rocm.json", log_of(30, lambda i: f"2025-06-09 04:{i:02}:00\n" + json.dumps(
        {f"card{gpu}": {"GPU use (%)": str(use), "Average Graphics Package Power (W)": "410"}
         for gpu, use in ((0, 90), (1, 40))}) + "\n"), 2, [0.9, 0.4]),
    ("time_in_front.csv", "index, utilization.gpu [%]\n" +
     log_of(30, lambda i: f"2025-06-09 04:{i:02}:00, 0, 90 %\n2025-06-09 04:{i:02}:00, 1, 40 %\n"), 2, [0.9, 0.4]),
    ("docker.log", "".join(json.dumps({"log": line + "\n", "stream": "stdout", "time": f"2025-06-09T04:{i:02}:00.5Z"}) + "\n"
                           for i in range(30) for line in (["index, utilization.gpu [%]"] if i == 0 else []) +
                           ["0, 90 %", "1, 40 %"]), 2, [0.9, 0.4]),
    ("two_levels.csv", ",util,util\ngpu,0,1\ntime,,\n" + log_of(30, lambda i: f"2025-06-09 04:{i:02}:00,90,40\n"), 2,
     [0.9, 0.4]),
    ("ts.log", "Jun 09 04:00:00 #Entity   GPUTL\n" + log_of(30, lambda i: "".join(
        f"Jun 09 04:{i:02}:00 GPU {gpu}     {use}\n" for gpu, use in ((0, 90), (1, 40)))), 2, [0.9, 0.4]),
    ("clearml.json", json.dumps({":monitor:gpu": {f"gpu_{gpu}_utilization": {
        "x": [1749441600000 + 60000 * i for i in range(30)], "y": [use] * 30} for gpu, use in ((0, 90), (1, 40))}}), 2,
     [0.9, 0.4]),
    ("used_of_all.csv", "Time;GPU-Util;Memory-Usage\n" +
     log_of(30, lambda i: f"2025-06-09 04:{i:02}:00;90%;21873MiB / 49140MiB\n"), 1, [0.9]),
])
def test_logs_as_people_have_them_are_read(headroom, tmp_path, name, text, devices, busy):
    (tmp_path / name).write_text(text)
    done = headroom("why", name, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["devices"]) == devices
    means = [device["metrics"]["gpu_util_ratio"]["mean"] for device in answer["devices"]]
    assert means == pytest.approx(busy, abs=0.001)
    assert answer["ledger"]["end_ns"] - answer["ledger"]["begin_ns"] == 30 * 60 * 10**9


def test_what_was_taken_for_granted_of_a_log_is_said(headroom, tmp_path):
    rows = log_of(30, lambda i: f"09/06/2025 04:{i:02}:00;\"9{i % 10},5\"\n")
    (tmp_path / "commas.csv").write_text("Horodatage;Utilisation GPU (%)\n" + rows)
    text = " ".join(headroom("why", "commas.csv").stdout.split())
    assert "Commas in the log were read as decimal points: '90,5' as 90.5" in text
    assert "read with the day first, as where numbers have decimal commas (--date-order says it;" in text
    (tmp_path / "minutes.csv").write_text("time,gpu_util,gpu_mem_mb\n" + log_of(180, lambda i: (
        f"2025-06-09 04:{i // 6:02},{i * 37 % 90},{7000 + 3 * i}\n")))
    text = " ".join(headroom("why", "minutes.csv").stdout.split())
    assert "of 30:00" in text and "rows of one minute are spread over it" in text
    (tmp_path / "below.log").write_text("gpu_util,gpu_mem_mb\n" + log_of(30, lambda i: (
        f"2025-06-09 04:{i:02}:00\n" + "70,8000\n" * 6)))
    text = " ".join(headroom("why", "below.log").stdout.split())
    assert "taken as one of each GPU" in text and "--log-interval says how far apart" in text
    text = " ".join(headroom("why", "below.log", "--log-interval", "10s").stdout.split())
    assert "taken as samples of one GPU, as far apart as --log-interval says" in text
    (tmp_path / "job.out").write_text("timestamp, index, utilization.gpu [%]\n" + log_of(30, lambda i: (
        f"2025/06/09 04:{i:02}:00.000, 0, 90 %\nEpoch {i}, step 3, loss 0.5\n")))
    text = headroom("why", "job.out").stdout
    assert "data was lost" not in text and "90 %" in text
