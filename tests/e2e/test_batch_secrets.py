# SPDX-License-Identifier: Apache-2.0
"""What a batch is given in secret is in no file that Headroom writes (docs/privacy.md), but for what the tasks print."""
import json

from batch_support import run

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
