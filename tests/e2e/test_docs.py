# SPDX-License-Identifier: Apache-2.0
"""What the documents and the packaging claim, held to the built program."""
import json
import re
import subprocess
import sys

from headroom_e2e import BUILD, HEADROOM, ROOT, headroom


def tool(name, *arguments):
    return subprocess.run([sys.executable, str(ROOT / "tools" / name), *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)


def test_readme_and_cases_show_what_the_program_prints():
    assert len(list((ROOT / "docs" / "cases").glob("00[0-4]-*.md"))) == 5
    done = tool("regen_docs.py", HEADROOM, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_needs_no_newer_glibc_than_2_34():
    """Of our own code and the static libraries; ./dev dist asks it of the whole portable executable."""
    done = tool("glibc_floor.py", HEADROOM, "--at-most", "2.34")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_loaded_into_other_programs_needs_glibc_2_34_and_nothing_else():
    for library in ("libheadroom_sim.so", "libnvidia-ml.so.1"):
        done = tool("glibc_floor.py", str(BUILD / "sim" / "blobs" / library), "--at-most", "2.34", "--only-libc")
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_glibc_check_can_fail():
    done = tool("glibc_floor.py", HEADROOM, "--at-most", "2.2", "--only-libc")
    assert done.returncode == 1
    assert "needs glibc 2.3" in done.stdout and "needs libstdc++.so.6" in done.stdout


def test_the_man_page_has_every_verb():
    page = subprocess.run([HEADROOM, "manual"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  ([a-z-]+) {2,}\S", subprocess.run([HEADROOM, "--help"], capture_output=True, text=True,
                                                                check=True).stdout, flags=re.M)
    assert len(verbs) > 5
    for verb in verbs:
        assert f'.SH "headroom {verb}"'.replace("-", "\\-") in page


def test_every_document_that_is_named_exists():
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for page in [*pages, *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`((?:docs|src|sim|tools|tests|examples)/[\w./-]+\.\w+)`", page.read_text("utf-8")):
            assert "NAME" in name or (ROOT / name).exists(), f"{page.relative_to(ROOT)} names {name}"


def test_the_ledgers_page_has_every_account():
    page = (ROOT / "docs" / "ledger.md").read_text("utf-8")
    header = (ROOT / "src" / "model" / "ledger.h").read_text("utf-8")
    causes = re.findall(r'AccountInfo\{Account::k\w+, "\w+", "(\w+)"', header)
    assert len(causes) == 20
    for cause in causes:
        assert f"`{cause}`" in page, cause


def members(answer):
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield name
            yield from members(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from members(value)


def test_every_member_of_the_json_answers_is_described(tmp_path):
    words = set(re.findall(r"\w+", "".join((ROOT / "docs" / name).read_text("utf-8") for name in
                                           ("json.md", "metrics.md", "doctor.md"))))
    commands = (["why", ROOT / "tests/golden/input_bound/run.hrec.jsonl"], ["why", ROOT / "tests/logs/epochs_a100.dmon"],
                ["doctor"], ["recordings"], ["sim", "--gpus", "1xH100", "--", HEADROOM, "devices"])
    for command in commands:
        answer = json.loads(headroom(tmp_path, *command, "--json", check=False).stdout)
        assert set(members(answer)) <= words, command


def test_the_dev_script_is_posix_and_lists_its_verbs():
    help_text = subprocess.run(["sh", str(ROOT / "dev"), "help"], capture_output=True, text=True, check=True).stdout
    for verb in ("demo", "test", "sanitize", "style", "check", "fuzz", "bless", "bench", "dist", "gpu"):
        assert f"./dev {verb}" in help_text
    done = subprocess.run(["sh", str(ROOT / "dev"), "tset"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "./dev help" in done.stderr


def test_architecture_says_what_the_layer_check_holds():
    sys.path.insert(0, str(ROOT / "tools"))
    import check_layers
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = {}
    for folders, may in re.findall(r"^\| (`.+?`) \| ([\w, ]*?) ?\|", page, flags=re.M):
        for folder in re.findall(r"`(?:src/)?(\w+)`", folders):
            rows[folder] = {name.strip() for name in may.split(",")} - {""}
    for layer, may in check_layers.MAY_INCLUDE.items():
        if any((ROOT / "src" / layer).glob("*.h")) or layer == "sim":
            assert rows.get(layer) == may, layer
