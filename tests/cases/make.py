#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the evidence of docs/cases anew: tests/cases/make.py BINARY [000|001|002|003|004]…

Each run is a real one of a small program on virtual GPUs; times are of this machine, so that every new making changes what the pages
show: run tools/regen_docs.py after it, and read the pages. Leave the machine alone meanwhile. What is kept names no machine, user or
folder: the folder that the runs are made in is called /home/user/train. Needs python3-sklearn; 003 python3-optuna.
"""
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "windows"
PYTHON = "python3"  # Debian's, by the PATH of the stage
HEADROOM = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else ""
FACTS = [(r'"cpuset_cores":"[^"]*"', '"cpuset_cores":"2"'), (r'"kernel":"(\d+\.\d+)[^"]*"', r'"kernel":"\1.0"'),
         (r'"user":"[^"]*"', '"user":"user"'), (r'"uid":"\d+"', '"uid":"1000"'),
         (r'[^"\s(]*/(?=(?:headroom_sim|by_hand|train_window)\.py)', "/home/user/train/")]


class Stage:
    """A folder to run in, with the programs of the cases."""

    def __init__(self, folder, number):
        self.folder, self.kept = pathlib.Path(folder), HERE / number
        self.kept.mkdir(exist_ok=True)
        for name in ("small_gpu.py", "epochs.py", "window.py"):
            shutil.copy(HERE / name, self.folder)

    def headroom(self, *words, code=0):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "user"}
        done = subprocess.run([HEADROOM, *map(str, words)], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        if done.returncode != code:
            sys.exit(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def run(self, name, gpus, *job, options=("--interval", "200ms"), code=0):
        """A kept recording of a job, as text."""
        recording = self.folder / f"{name}.hrec"
        self.headroom("sim", "--gpus", gpus, "--", HEADROOM, "run", "--output-lines", *options, "-o", recording, "--", *job, code=code)
        without_names(recording, self.folder)
        self.keep(f"{name}.jsonl", self.headroom("export", recording, "-f", "jsonl").encode())

    def batch(self, name, gpus, *words, code=0):
        """A kept recording of a batch, with the copy of its journal."""
        recording = self.folder / f"{name}.hrec"
        said = self.headroom("sim", "--gpus", gpus, "--", HEADROOM, "batch", *words, "-o", recording, code=code)
        without_names(recording, self.folder)
        self.keep(f"{name}.hrec", recording.read_bytes())
        print(said)

    def keep(self, name, content):
        with open(self.kept / f"{name}.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
            packed.write(content)


def without_names(recording, folder):
    """In every text of the file."""
    database = sqlite3.connect(recording)
    host, boot = (database.execute("select value from meta where key = ?", [key]).fetchone()[0] for key in ("host", "boot_id"))

    def cleaned(text):
        for old, new in ((HEADROOM, "headroom"), (str(folder), "/home/user/train"), (boot, "00000000-0000-0000-0000-000000000000")):
            text = text.replace(old, new)
        for pattern, instead in FACTS:
            text = re.sub(pattern, instead, text)
        return "box" if text == host else text

    database.create_function("cleaned", 1, cleaned)
    for table, in database.execute("select name from sqlite_master where type = 'table'").fetchall():
        for _, column, *_ in database.execute(f"pragma table_info({table})").fetchall():
            database.execute(f"update {table} set {column} = cleaned({column}) where typeof({column}) = 'text'")
    database.execute("update source set key = '/' where kind = 'cgroup'")
    database.commit()
    database.execute("pragma journal_mode = delete")
    database.execute("vacuum")
    database.close()


def case_004(stage):
    """batch 32, a sweep of 70 h; 8 epochs stand for the 5 minutes that were watched."""
    def config(batch, rate, slow):
        (stage.folder / "config.json").write_text(json.dumps(
            {"batch_size": batch, "epochs": 8, "learning_rate": rate, "slow": slow}))

    shutil.copy(HERE / "small_gpu.py", stage.folder / "train.py")
    subprocess.run(["/usr/bin/python3", "-c", "import numpy, sklearn.datasets as d; i, l = d.load_digits(return_X_y=True); "
                    "numpy.savez('digits.npz', images=i, labels=l)"], cwd=stage.folder, check=True)
    for name, batch, rate, slow in (("before", 32, 0.001, "optimizer"), ("batch128", 128, 0.001, "optimizer"),
                                    ("batch128_rate", 128, 0.004, "optimizer"),
                                    ("loader", 32, 0.001, "loader"), ("loader128", 128, 0.004, "loader")):
        config(batch, rate, slow)
        stage.run(name, "1xRTX4050", PYTHON, "train.py",
                  options=("--metric", "accuracy=accuracy=([0-9.]+)", "--interval", "200ms"))
    config(32, 0.001, "optimizer")
    source = (stage.folder / "train.py").read_text()
    asked = source.replace("BATCH, EPOCHS,", "import sys\nCONFIG['batch_size'] = int(sys.argv[1])\nBATCH, EPOCHS,")
    assert asked != source
    (stage.folder / "probe.py").write_text(asked)
    said = stage.headroom("sim", "--gpus", "1xRTX4050", "--", HEADROOM, "probe", "--vary", "batch_size=32,64", "--larger", "128", "--json",
                          "--", PYTHON, "probe.py", "{batch_size}")
    answer = json.loads(said)
    (stage.kept / "probe.json").write_text(json.dumps(answer, indent=1).replace(str(stage.folder), "/home/user/train") + "\n")


def case_001(stage):
    """Seven minutes of an epoch as seven seconds; each state of the program three times, in turn."""
    phases = ("--phase", "train=: train$", "--phase", "validate=^validate$", "--phase", "graphs=^graphs$", "--phase", "none=^done$",
              "--step", "^step ([0-9]+)/", "--interval", "200ms")
    stage.headroom("sim", "--gpus", "1xA100-80", "--", PYTHON, "epochs.py", "--build", "graphs.bin")
    for turn in (1, 2, 3):
        for name, *words in (("before",), ("workers", "--num-workers", "4"), ("graphs", "--graphs", "graphs.bin"),
                             ("both", "--graphs", "graphs.bin", "--validation-batch", "4")):
            stage.run(f"{name}{turn}", "1xA100-80", PYTHON, "epochs.py", *words, options=phases)


SYMBOLS = ["RELIANCE", "ITC", "TCS", "SBIN", "INFY", "ONGC", "HDFCBANK", "NTPC", "WIPRO", "CIPLA", "TATASTEEL", "TITAN"]
SIX = SYMBOLS[::2]
WINDOWS = ["2022H1", "2022H2", "2023H1", "2023H2", "2024H1", "2024H2"]


def tasks(stage, name, symbols, *words):
    command = [PYTHON, "window.py", "--symbol", "{symbol}", "--window", "{window}", "--output", f"{name}/{{task}}", *words]
    (stage.folder / f"{name}.toml").write_text(
        f'[batch]\nname = "{name}"\n\n[task]\nname = "{{symbol}}_{{window}}"\ncommand = {json.dumps(command)}\n'
        f'outputs = ["{name}/{{task}}/model.json"]\ngpus = 1\ngpu_memory = "1GiB"\n\n'
        f'[task.grid]\nsymbol = {json.dumps(symbols)}\nwindow = {json.dumps(WINDOWS)}\n\n'
        '[log]\nparam.num_leaves = "num_leaves=([0-9]+)"\nparam.n_estimators = "n_estimators=([0-9]+)"\n'
        'metric.accuracy = "accuracy=([0-9.]+)"\n')
    return f"{name}.toml"


def case_000(stage):
    """96 symbols as 12; 6 of them again with twice the model; then both of these 6 in turn. And four ways to pin wrongly by hand."""
    twice = ("--num-leaves", "255", "--n-estimators", "1000")
    one_each = ("2xA6000", "--no-pack")
    stage.batch("baseline", one_each[0], tasks(stage, "baseline", SYMBOLS), *one_each[1:])
    stage.batch("experiment", one_each[0], tasks(stage, "experiment", SIX, *twice), *one_each[1:], code=1)
    whole = ("--only", "[!T]*", "--only", "TCS*", "--only", "TATASTEEL_202[24]H1", "--only", "TATASTEEL_202[23]H2")
    stage.batch("six", one_each[0], tasks(stage, "six", SIX), *one_each[1:], *whole)
    stage.batch("six_twice", one_each[0], tasks(stage, "six_twice", SIX, *twice), *one_each[1:], *whole)
    for name in ("by_hand.py", "train_window.py", "windows.toml"):
        shutil.copy(EXAMPLE / name, stage.folder)
    for name, gpus, *how in (("list_of_one", "2xA6000", "--gpus", "0", "--workers", "2"), ("late_mask", "2xA6000", "--pin", "late"),
                             ("mask_and_number", "2xA6000", "--pin", "both"), ("cuda_order", "1xT4,1xA6000", "--gpus", "0"),
                             ("pinned", "2xA6000", "--gpus", "0,1")):
        stage.run(name, gpus, PYTHON, "by_hand.py", "--windows", "24", "--trees", "6", "--output", "models", *how)


def case_002(stage):
    """18 minutes as 18 s: features, teachers (the GPU's part), students, evaluation. Then 36 windows of 1.4 s as a batch."""
    for name in ("by_hand.py", "train_window.py", "windows.toml"):
        shutil.copy(EXAMPLE / name, stage.folder)
    stage.run("pipeline", "2xA6000", PYTHON, "by_hand.py", "--serial", "--windows", "84", "--phases", "3,6,6,3", "--trees", "3",
              "--kernel-ms", "6", "--output", "models")
    slow = ("--fetch-ms", "800", "--kernel-ms", "41")
    for name, *how in (("one_gpu", "--gpus", "0", "--no-pack"), ("one_gpu_packed", "--gpus", "0", "--per-gpu", "4"),
                       ("two_gpus", "--no-pack"), ("packed", "--per-gpu", "4")):
        stage.batch(name, "2xA6000", tasks(stage, name, SIX, *slow), *how)
        if name in ("one_gpu", "packed"):
            for window in WINDOWS:
                shutil.copytree(stage.folder / name / f"TCS_{window}", stage.kept / f"models_{name}" / f"TCS_{window}", dirs_exist_ok=True)


def case_003(stage):
    for name, *how in (("study",), ("narrow", "narrow"), ("after", "narrow", "warm")):
        log = stage.folder / f"{name}.journal"
        subprocess.run(["/usr/bin/python3", HERE / "sweep.py", log, "3", *how], check=True)
        stage.keep(log.name, log.read_bytes())


CASES = {name[5:]: case for name, case in list(globals().items()) if name.startswith("case_")}


if __name__ == "__main__":
    for number in sys.argv[2:] or CASES:
        with contextlib.ExitStack() as stack:
            CASES[number](Stage(stack.enter_context(tempfile.TemporaryDirectory(prefix="case-")), number))
