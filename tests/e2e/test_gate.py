# SPDX-License-Identifier: Apache-2.0
"""What counts as passed: skips, abstentions and second chances, in a folder of tests made for it."""
import subprocess
import sys

import pytest

from headroom_e2e import ROOT, environment

ONCE = "if [ -e {0} ]; then echo second words; exit 0; fi; touch {0}; echo first words; exit 1"


def ctest_folder(tmp_path, **tests):
    """A folder for ctest; each test is (labels, shell script)."""
    folder = tmp_path / "build"
    folder.mkdir()
    lines = []
    for name, (labels, script) in tests.items():
        name = name.replace("__", ".")
        lines.append(f'add_test("{name}" "sh" "-c" "{script.format(tmp_path / name)}")')
        lines.append(f'set_tests_properties("{name}" PROPERTIES LABELS "{labels}")')
    (folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(["ctest", "--test-dir", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return folder


def second_chance(tmp_path, folder):
    return subprocess.run([ROOT / "tools" / "second_chance.sh", folder], env=environment(tmp_path), capture_output=True, text=True,
                          check=False).returncode


def summary(tmp_path, *arguments, ci="true"):
    done = subprocess.run([sys.executable, ROOT / "tools" / "test_summary.py", *arguments], env=environment(tmp_path, CI=ci),
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_what_passes_alone_is_flaky_and_both_outputs_are_kept(tmp_path):
    folder = ctest_folder(tmp_path, e2e__slow=("e2e", ONCE), e2e__good=("e2e", "true"))
    assert second_chance(tmp_path, folder) == 0
    code, lines = summary(tmp_path, folder)
    assert code == 0 and lines[-1] == "2 passed, 0 failed"
    assert any(line.startswith("FLAKY e2e.slow: ") for line in lines)
    logs = folder / "Testing" / "Temporary"
    assert "first words" in (logs / "LastTest.log").read_text() and "second words" in (logs / "SecondTest.log").read_text()
    assert summary(tmp_path, "--twice", folder)[1][-1] == "1 passed, 1 failed", "for us a flake is a failure"


@pytest.mark.parametrize("name, labels", [("e2e__batch_kills", "e2e;survival"), ("unit__base", "unit"), ("golden", "")])
def test_one_loss_is_a_loss_where_that_is_the_subject(tmp_path, name, labels):
    folder = ctest_folder(tmp_path, **{name: (labels, ONCE), "e2e__slow": ("e2e", ONCE)})
    assert second_chance(tmp_path, folder) == 1
    code, lines = summary(tmp_path, folder)
    assert code == 1 and f"FAILED {name.replace('__', '.')}" in lines and lines[-1] == "1 passed, 1 failed"


def test_what_fails_twice_has_failed(tmp_path):
    folder = ctest_folder(tmp_path, e2e__wrong=("e2e", "false"))
    assert second_chance(tmp_path, folder) == 1
    assert summary(tmp_path, folder)[1][-1] == "0 passed, 1 failed"


@pytest.mark.parametrize("name, reason, ci, last", [
    ("truth.walk", "abstained: machine busy", "true", ["1 passed, 0 failed"]),
    ("e2e.walk", "abstained: machine busy", "true", ["0 abstained", "1 passed, 1 failed"]),
    ("e2e.walk", "not possible here: no tmpfs", "true", ["0 abstained", "1 passed, 0 failed"]),
    ("e2e.walk", "psql is not installed", "true", ["0 abstained", "1 passed, 1 failed"]),
    ("e2e.walk", "psql is not installed", "", ["0 abstained", "1 passed, 0 failed"])])
def test_only_a_measurement_may_abstain(tmp_path, name, reason, ci, last):
    folder = ctest_folder(tmp_path, **{name: ("any", f"echo 'SKIPPED [1] tests/e2e/test_walk.py:10: {reason}'")})
    code, lines = summary(tmp_path, folder, ci=ci)
    assert lines[-len(last):] == last and code == (not last[-1].endswith(" 0 failed"))
    if "abstained: " in reason and name.startswith("truth."):
        assert lines[0] == "ABSTAINED truth.walk (test_walk.py, 1 test): machine busy"
        assert lines[1].startswith("1 abstained: machine busy, load ")


@pytest.mark.parametrize("said", ["E   AssertionError: task-3 ran again", "tests/e2e/test_x.py:12: TimeoutExpired",
                                  "src/base/a_test.cc:9: Failure", "==1==ERROR: AddressSanitizer: heap-use-after-free"])
def test_the_summary_says_why_a_test_failed(tmp_path, said):
    folder = ctest_folder(tmp_path, e2e__wrong=("e2e", f"echo before; echo '{said}'; echo after; false"))
    lines = summary(tmp_path, folder)[1]
    assert lines[lines.index("FAILED e2e.wrong") + 1] == f"    {said}"


def test_a_build_without_tests_has_failed(tmp_path):
    (tmp_path / "empty").mkdir()
    code, lines = summary(tmp_path, "style=0", tmp_path / "empty")
    assert code == 1 and lines[-1] == "1 passed, 1 failed"
