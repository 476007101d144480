# SPDX-License-Identifier: Apache-2.0
"""Reports for people: their length, that no two of their lines disagree, and that text from outside stays text."""
import json
import random
import re

import pytest

from headroom_e2e import HEADROOM, ROOT, headroom

RECORDINGS = sorted([*(ROOT / "tests" / "golden").glob("*/run.hrec.jsonl"), *(ROOT / "tests" / "logs").glob("*.csv"),
                     *(ROOT / "tests" / "logs").glob("*.dmon")])
NAMES = [f"{path.parent.name}/{path.name}" for path in RECORDINGS]
ROW = re.compile(r"^  (\S.{0,18}?\S) {2,}[█▏▎▍▌▋▊▉# ]* +(<? ?[\d.]+) %  +(\S.*)$")


def log(path, gpus, rows, utilisation, power=lambda gpu, util: 60 + 2.4 * util):
    """A log of nvidia-smi, a row a second."""
    lines = ["timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
             "memory.total [MiB], power.draw [W], temperature.gpu"]
    for second in range(rows):
        clock = f"2025/11/05 {10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000"
        for gpu in range(gpus):
            util = utilisation(gpu, second)
            lines.append(f"{clock}, {gpu}, NVIDIA A100-SXM4-80GB, {util} %, {util // 2} %, 12000 MiB, 81920 MiB, "
                         f"{power(gpu, util):.2f} W, 60")
    path.write_text("\n".join(lines) + "\n")
    return path


def in_step(gpu, second):
    """What data-parallel training with a pause between its epochs looks like, not quite at once on all GPUs."""
    return 0 if (second - gpu // 4) % 60 >= 35 else 95 + (second + gpu) % 6


def apart(gpu, second):
    return 0 if second % 20 < 2 * gpu else 90


@pytest.mark.parametrize("gpus,limit", [(1, 40), (2, 40), (8, 50), (16, 50)])
@pytest.mark.parametrize("utilisation", [in_step, apart, lambda gpu, second: 100, lambda gpu, second: 0],
                         ids=["in_step", "apart", "busy", "idle"])
def test_a_report_fits_a_screen(tmp_path, gpus, limit, utilisation):
    path = log(tmp_path / "log.csv", gpus, 300, utilisation)
    text = headroom(tmp_path, "why", path, "--width=80").stdout
    assert len(text.splitlines()) <= limit, text
    assert "--full" in text.splitlines()[-1]
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("Next:")), text
    assert "computing" not in text or text.count("a kernel was on the GPU") == 1


@pytest.mark.parametrize("path", RECORDINGS, ids=NAMES)
def test_recordings_fit_a_screen(tmp_path, path):
    text = headroom(tmp_path, "why", path, "--width=80").stdout
    assert len(text.splitlines()) <= 40, text


def test_gpus_alike_are_told_together(tmp_path):
    path = log(tmp_path / "log.csv", 8, 300, in_step)
    text = headroom(tmp_path, "why", path, "--width=80").stdout
    assert "GPUs 0 to 7  NVIDIA A100-SXM4-80GB" in text
    titles = [line for line in text.splitlines() if re.match(r"\d\. ", line)]
    assert len(titles) == len(set(titles)) <= 3
    odd = log(tmp_path / "odd.csv", 8, 300, lambda gpu, second: 0 if gpu == 3 else in_step(gpu, second))
    assert "GPUs 0 to 2, 4 to 7" in headroom(tmp_path, "why", odd, "--width=80").stdout or \
        "GPUs 0 to 2 and 4 to 7" in headroom(tmp_path, "why", odd, "--width=80").stdout


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_every_width_wraps(tmp_path, width):
    path = log(tmp_path / "log.csv", 8, 300, apart)
    for full in ([], ["--full"]):
        lines = headroom(tmp_path, "why", path, f"--width={width}", *full).stdout.splitlines()
        command = re.compile(r"(Next:|     ) +headroom ")
        tables = re.compile(r"^  (GPU \d+|\w+_\w+|phase) ")  # of figures: read on a wider screen
        assert all(len(line) <= width for line in lines if not command.match(line) and not tables.match(line)), lines


@pytest.mark.parametrize("width", ["39", "0", "161", "-1", "x"])
def test_a_width_that_cannot_be_is_refused(tmp_path, width):
    done = headroom(tmp_path, "why", RECORDINGS[0], f"--width={width}", check=False)
    assert done.returncode == 2 and done.stdout == "" and "--width" in done.stderr


def assert_no_contradiction(tmp_path, path):
    answer = json.loads(headroom(tmp_path, "why", path, "--json").stdout)
    full = headroom(tmp_path, "why", path, "--full", "--width=160").stdout
    short = headroom(tmp_path, "why", path, "--width=80").stdout
    budget = answer["ledger"]["budget_ns"]
    accounts, labels = {}, {}
    for row in answer["ledger"]["accounts"]:
        accounts[row["device"], row["cause"]] = accounts.get((row["device"], row["cause"]), 0) + row["ns"]
        labels[row["cause"]] = row["label"]
    for text in (full, short):  # the rows of each bar chart sum to all of it, and say what the ledger says
        assert text.splitlines()[0] == full.splitlines()[0] or text is short
        charts = re.split(r"\n(?=GPUs? \d)", text)
        for chart in charts[1:]:
            rows = [ROW.match(line) for line in chart.split("\n")[1:]]
            shares = [float(row[2].replace("<", "")) for row in rows[:rows.index(None)] if row] if None in rows else []
            if shares and "= 100 %" in chart.split("\n")[0]:
                assert abs(sum(shares) - 100) <= 0.1 * len(shares) + 0.1, chart
    said = re.search(r"computed for (?:about )?([\d.]+) %", answer["headline"])
    if said:  # of the GPUs that were used: at most all of them, at least of the whole budget
        useful = {d["uuid"]: accounts.get((d["uuid"], "useful"), 0) for d in answer["devices"]}
        of_all = sum(useful.values()) / budget
        of_one = max(useful.values()) / (budget / len(useful))
        slack = 0.006 if float(said[1]) >= 10 else 0.0006
        assert of_all - slack <= float(said[1]) / 100 <= of_one + slack, answer["headline"]
    for finding in answer["findings"]:
        for claim in finding["claims"]:  # no finding costs more than the account that it is about
            of = sum(c["ns"] for c in finding["claims"]
                     if (c["device"], c["account"]) == (claim["device"], claim["account"]))
            assert of <= accounts[claim["device"], claim["account"]], finding["title"]
        if finding["gain"] and answer["bound"]:
            assert finding["gain"]["high"] <= answer["bound"]["speedup_high"] + 1e-9, finding["title"]
    other = [f for f in answer["findings"]
             if f["cause"] not in ("healthy", "recording_losses", "sensor_outlier")]
    if any(f["cause"] == "healthy" for f in answer["findings"]):
        assert other == [], [f["title"] for f in other]
    problems = [check for check in answer["health"]
                if check["answer"] == "no" and check["check"] != "mixed_precision"]
    assert ("Problems:" in short) >= bool(problems)
    assert not re.search(r"\btiers?\b|Not healthy|Rests on|Wrong if|\b[NPLYXCS]{2,}\b(?=[,;]| conf)", short + full)
    if answer["bound"]:  # a mean of readings and the share of time may differ; then the report says why
        for device in answer["devices"]:
            mean = device["metrics"].get("gpu_util_ratio", {}).get("mean")
            busy = sum(a["ns"] for a in answer["ledger"]["accounts"]
                       if a["device"] == device["uuid"] and a["state"] == "busy") / (budget / len(answer["devices"]))
            if mean is not None and abs(mean - busy) >= 0.02:
                assert "counts each reading once" in full


@pytest.mark.parametrize("path", RECORDINGS, ids=NAMES)
def test_no_two_lines_of_a_recordings_report_disagree(tmp_path, path):
    assert_no_contradiction(tmp_path, path)


@pytest.mark.parametrize("seed", range(12))
def test_no_two_lines_of_a_random_report_disagree(tmp_path, seed):
    chance = random.Random(seed)
    gpus, period, mix = chance.randint(1, 4), chance.randint(2, 90), chance.random()
    levels = [[chance.choice([0, 0, 30, 70, 100]) for _ in range(period)] for _ in range(gpus)]
    low = chance.random() < 0.5
    path = log(tmp_path / "log.csv", gpus, chance.randint(60, 400),
               lambda gpu, second: levels[0 if mix < 0.5 else gpu][second % period],
               power=lambda gpu, util: 82 if low and util else 60 + 2.4 * util)
    assert_no_contradiction(tmp_path, path)


# A command to the terminal in each way that there is: ESC, C1 as one character and as one byte, direction, line end.
EVIL = "\x1b]52;c;aGk=\x07 \u009b2J \u202e back"


def assert_harmless(text):
    """`text` as bytes."""
    shown = text.decode("utf-8")  # raises where a byte is no character
    bad = [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202e\u2066"]
    assert bad == [], shown


def evil_everywhere(value):
    """Every string of a recording, but for what its reader looks at, with EVIL behind it."""
    kept = {"kind", "tier", "severity", "what", "origin", "at", "end", "tiers"}
    if isinstance(value, dict):
        return {k: v if k in kept else evil_everywhere(v) for k, v in value.items()}
    if isinstance(value, list):
        return [evil_everywhere(v) for v in value]
    return value + EVIL if isinstance(value, str) and value and not re.fullmatch(r"[-\d.:/]+", value) else value


def test_no_text_of_a_recording_reaches_the_terminal_as_a_command(tmp_path):
    import subprocess
    for name in ("input_bound", "batch_two_gpus"):
        lines = (ROOT / "tests" / "golden" / name / "run.hrec.jsonl").read_text("utf-8").splitlines()
        for field in ("name", "comm", "cmdline", "task", "command", "why", "detail", "uuid", "where"):
            evil = []
            for line in lines:
                entry = json.loads(line)
                for part in (entry, entry.get("attrs", {}), entry.get("meta", {}), entry.get("extra", {})):
                    if isinstance(part, dict) and isinstance(part.get(field), (str, list)):
                        part[field] = evil_everywhere(part[field])
                evil.append(json.dumps(entry))
            path = tmp_path / f"{name} {EVIL.replace('/', '')}.hrec.jsonl"
            path.write_text("\n".join(evil) + "\n", encoding="utf-8")
            for arguments in (["why", path], ["why", path, "--full"], ["why", str(path) + "not there"],
                              ["import", path], ["plan", path, "--full"], ["top", path, "--once"],
                              ["stacks", path, "--all"], ["compare", path, path, "--full"],
                              ["report", path, "--as", "md", "-o", "-"], [EVIL], ["why", "--" + EVIL], ["batch", EVIL]):
                done = subprocess.run([HEADROOM, *map(str, arguments)], capture_output=True, timeout=60, check=False,
                                      cwd=tmp_path, env={"HOME": str(tmp_path), "LC_ALL": "C.UTF-8"})
                assert_harmless(done.stdout)
                assert_harmless(done.stderr)


def test_no_text_of_a_task_reaches_the_terminal_as_a_command(tmp_path):
    import subprocess
    (tmp_path / "evil.toml").write_text(
        "[log]\nmetric.loss = 'loss=([0-9.]+)'\n"
        "[[task]]\nname = 'values'\nshell = true\ncommand = 'echo loss=0.5; true {word}'\n[task.grid]\nword = ["
        + json.dumps(EVIL) + "]\n"
        "[[task]]\nname = 'bad'\ncommand = ['sh', '-c', " + json.dumps(f"printf '%s\\n' 'ValueError: {EVIL}'; exit 3")
        + "]\n", encoding="utf-8")
    env = {"HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}

    def run(*arguments):
        done = subprocess.run([HEADROOM, *arguments], capture_output=True, timeout=60, check=False, cwd=tmp_path,
                              env=env, stdin=subprocess.DEVNULL)
        assert_harmless(done.stdout)
        assert_harmless(done.stderr)
        return done.stdout + done.stderr
    batch = ("batch", "evil.toml", "--gpus", "none", "--retries", "0")
    run(*batch, "--dry-run")
    run(*batch)
    assert b"ValueError" in run("batch", "show", "bad")
    run("batch", "show")
    run("batch", "table")
    run("batch", "table", "--csv")
    run("batch", "status")
    run("recordings")
