# SPDX-License-Identifier: Apache-2.0
"""What Headroom is given in secret is in no file that it writes (docs/privacy.md), but for what tasks print."""
import json
import os
import signal
import subprocess
import sys

from batch_support import run
from headroom_e2e import HEADROOM, ROOT, environment

TOKEN, OTHER, PARAMETER = "hf_AbCdEfGhIjKlMnOpQrStUv", "glpat-0123456789abcdefABCD", "parameter33sekret"
WORD, VARIABLE, PLAIN, PRINTED = "hunter22sekret", "wandb44sekret", "plain55sekret", "ghp_0123456789abcdefABCDEFprinted"
URL, FILE_URL, RESOLVED = "urlpassword66sekret", "fileurl77sekret", "resolved88sekret"
SECRETS = [TOKEN, OTHER, PARAMETER, WORD, VARIABLE, PLAIN, PRINTED, URL, FILE_URL, RESOLVED]


def written(tmp_path, *but):
    """Every file in tmp_path, with its bytes; without those in the folders of `but`, and these files themselves."""
    return {path: path.read_bytes() for path in tmp_path.rglob("*")
            if path.is_file() and not any(path == one or one in path.parents for one in but)}


def assert_hidden(tmp_path, *but):
    files = written(tmp_path, *but)
    assert any(path.name == "journal.sqlite" for path in files) and any(path.suffix == ".hrec" for path in files), files
    assert any(path.name == "batch-history.jsonl" for path in files), files
    for path in tmp_path.rglob("*"):
        assert not any(secret in path.name for secret in SECRETS), path
    for path, content in files.items():
        found = [secret for secret in SECRETS if secret.encode() in content]
        assert found == [], path


def test_secrets_of_a_task_file_are_in_no_file_of_headrooms(tmp_path):
    given, folder = tmp_path / "given", tmp_path / "f"
    given.mkdir()
    (given / "secret.env").write_text(f"PLAINVAR={PLAIN}\nDATABASE_URL=postgres://u:{FILE_URL}@host/db\n")
    (given / "tasks.toml").write_text(
        f'[[task]]\nname = "all"\ncommand = ["sh", "-c", "test $WANDB_API_KEY && '
        f'exec sleep 0.3", "train", "--password={WORD}", "--api-token", "{{word}}"]\n'
        f'env = {{ WANDB_API_KEY = "{VARIABLE}", BROKER = "amqp://u:{URL}@host/", LR = "0.1" }}\nenv_file = "secret.env"\n'
        f'[task.grid]\nword = ["{PARAMETER}", "{TOKEN}"]\n'
        '[[task]]\nname = "resolved"\nresolved = "given/r.json"\ncommand = ["cp", "given/source.json", "given/r.json"]\n'
        '[[task]]\nname = "quotes"\ncommand = ["sh", "-c", "cat given/words; exit 3"]\n')
    (given / "source.json").write_text(json.dumps({"lr": 0.5, "api_key": RESOLVED}))
    (given / "words").write_text(f"HTTPError: 401 for {PRINTED} at https://u:{URL}@host/\n")
    answer = run(tmp_path, given / "tasks.toml", "--folder", folder, "--gpus", "none", "--slots", "2", "--retries", "0",
                 "--grace", "300ms", "-o", tmp_path / "batch.hrec", code=1)
    assert "3 succeeded" in answer.stdout, answer.stdout + answer.stderr
    assert_hidden(tmp_path, given, folder / "logs")
    shown = run(tmp_path, "show", "--json", "--folder", folder).stdout
    table = run(tmp_path, "table", "--json", "--folder", folder).stdout
    said = answer.stdout + answer.stderr + shown + table + run(tmp_path, "show", "--folder", folder).stdout
    assert not any(secret in said for secret in SECRETS), said
    attempts = {attempt["task"]: attempt for attempt in json.loads(shown)["attempts"]}
    assert set(attempts) == {"all-hidden-1", "all-hidden-2", "resolved", "quotes"}
    environment = attempts["all-hidden-1"]["environment"]
    assert environment["LR"] == "0.1" and environment["BROKER"] == "amqp://u:***@host/"
    assert all(environment[name].startswith("***") for name in ("PLAINVAR", "DATABASE_URL", "WANDB_API_KEY"))
    assert attempts["resolved"]["parameters_resolved"]["lr"] == "0.5"
    assert attempts["quotes"]["reason"] == "exit code 3: HTTPError: 401 for *** at https://u:***@host/"


def test_secrets_of_a_command_are_in_no_file_of_headrooms(tmp_path):
    folder = tmp_path / "f"
    run(tmp_path, "--folder", folder, "--gpus", "none", "--slots", "2", "-o", tmp_path / "batch.hrec", "--", "sleep", "0.3",
        f"--password={WORD}", "--token", "{}", ":::", TOKEN, OTHER, code=1)  # sleep knows no such option
    run(tmp_path, "--folder", folder, "--gpus", "none", "--slots", "2", "-o", tmp_path / "batch2.hrec", "--", "sh", "-c",
        "sleep 0.3", "x", f"--password={WORD}", "--token", "{}", ":::", TOKEN, OTHER)
    assert_hidden(tmp_path, folder / "logs")
    assert {path.name.partition("-")[2] for path in (folder / "logs").iterdir()} == {"hidden-1.log", "hidden-2.log"}


JOB = """
import os, time, headroom
headroom.params(api_key=os.environ["WORD_OF_THE_KEY"])
for step in range(40):
    time.sleep(0.01)
    headroom.step()
"""


def test_a_tour_of_all_verbs_leaves_no_secret_in_any_file(tmp_path):
    """Under state, cache, configuration and runtime folders, in batch folders, and in what was written by request."""
    given, work = tmp_path / "given", tmp_path / "work"
    given.mkdir()
    work.mkdir()
    (given / "job.py").write_text(JOB)
    (given / "secret.env").write_text(f"PLAINVAR={PLAIN}\n")
    (given / "tasks.toml").write_text(
        f'[[task]]\nname = "one"\ncommand = ["sh", "-c", "sleep 0.2", "x", "--password={WORD}", "https://u:{URL}@h/x"]\n'
        f'env = {{ WANDB_API_KEY = "{VARIABLE}" }}\nenv_file = "secret.env"\n')
    env = environment(tmp_path, PYTHONPATH=str(ROOT / "python"), XDG_CACHE_HOME=str(tmp_path / "cache"),
                      XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_RUNTIME_DIR=str(tmp_path / "runtime"),
                      WANDB_API_KEY=VARIABLE, WORD_OF_THE_KEY=PARAMETER, HEADROOM_NVML=str(tmp_path / "no-driver.so"))
    (tmp_path / "runtime").mkdir(mode=0o700)

    def headroom(*words, code=(0,), repeats=False):  # a command to give again is repeated as it was given
        done = subprocess.run([HEADROOM, *map(str, words)], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, check=False)
        assert done.returncode in code, (words, done.returncode, done.stdout, done.stderr)
        said = done.stdout + done.stderr
        assert repeats or not any(secret in said for secret in SECRETS), (words, said)

    job = [sys.executable, given / "job.py", f"--password={WORD}", "--api-key", TOKEN, f"https://u:{URL}@h/x"]
    headroom("run", "-o", "a.hrec", "--json=why.json", "--on-end", "true", "--", *job)
    headroom("run", "--output-lines", "-o", "b.hrec", "--", *job)
    sleeper = subprocess.Popen(["sh", "-c", "sleep 60; true", "x", f"--password={WORD}"], env=env, start_new_session=True)
    try:
        headroom("record", "--no-gpu", "--pid", sleeper.pid, "--duration", "1s", "-o", "c.hrec")
    finally:
        os.killpg(sleeper.pid, signal.SIGKILL)
        sleeper.wait()
    headroom("batch", given / "tasks.toml", "--gpus", "none", "--folder", "f", "-o", "d.hrec")
    headroom("batch", given / "tasks.toml", "--gpus", "none", "--folder", "f")  # with what is known of it by then
    headroom("ab", "--repeats", "3", "--folder", "pair", "--", *job, "---", *job, code=(0, 1), repeats=True)
    headroom("probe", "--vary", "ms=1,2", "--rounds", "2", "--whole", "--folder", "tried", "--", "sh", "-c", "sleep 0.2", "x",
             "{ms}", f"--password={WORD}", code=(0, 1), repeats=True)
    headroom("plan", "a.hrec", "-o", "plan.json")
    headroom("verify", "plan.json", "b.hrec", code=(0, 1, 2))
    headroom("compare", "a.hrec", "b.hrec", "--json", code=(0, 1))
    headroom("report", "d.hrec", "-o", "report.html")
    headroom("report", "a.hrec", "-o", "report.md")
    for form in ("csv", "jsonl", "chrome", "openmetrics", "hrec"):
        headroom("export", "a.hrec", "-f", form, "-o", f"export.{form}")
    headroom("import", "export.jsonl", "-o", "imported.hrec")
    headroom("stacks", "a.hrec", "-f", "speedscope", "-o", "stacks.json", code=(0, 1, 2))
    headroom("top", "a.hrec", "--once", "--json")
    for words in (["status"], ["show", "one"], ["show", "--json"], ["table"]):
        headroom("batch", *words, "--folder", "f")
    for words in (["recordings"], ["doctor"], ["devices"]):
        headroom(*words, code=(0, 1))
    assert_hidden(tmp_path, given, work / "f" / "logs", work / "pair" / "logs", work / "tried" / "logs")
