# SPDX-License-Identifier: Apache-2.0
"""What `headroom study -o plan.json` predicts of a sweep, held against sweeps that the real Optuna decided on a virtual clock, with
the change and without it."""
import datetime
import json
import shutil

import pytest

from headroom_e2e import headroom
from made_recording import REALTIME, Made
from test_schemas import held

pytest.importorskip("optuna", minversion="3.1", reason="python3-optuna is not installed")

import study_support  # noqa: E402
from study_support import BASE, CHANGES  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
TOLD = ("--pruner", "PatientPruner(HyperbandPruner(1, 60, 6), patience=3)", "--kernel-share", "0.75", "--workers", "4",
        "--replays", "10")
SWEEPS = {"base": (BASE, 1, 100), "other": (BASE, 2, 100), "warm": (CHANGES["warm workers"], 1, 40),
          "warm, other": (CHANGES["warm workers"], 2, 100), "few": (CHANGES["warm workers"], 1, 13)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A storage for each sweep, and the plan of the first."""
    folder = tmp_path_factory.mktemp("sweeps")
    for name, (settings, seed, trials) in SWEEPS.items():
        sweep = study_support.virtual_sweep(settings, seed, "random", trials)
        study_support.write_sqlite(sweep, folder / f"{name}.db")
    headroom(folder, "study", "base.db", *TOLD, "-o", "plan.json")
    return folder


def verified(stored, storage, change, *arguments, code):
    done = headroom(stored, "verify", "plan.json", storage, "--applied", change, "--no-history", "--json", *arguments, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return held(done.stdout)


def figures(answer):
    return {figure["figure"]: figure for figure in answer["figures"]}


def test_the_plan_is_the_answer_with_ranges_for_each_change(stored):
    plan = held((stored / "plan.json").read_text())
    assert plan == held(headroom(stored, "study", "base.db", *TOLD, "--json").stdout)
    (study,) = plan["studies"]
    assert {parameter["name"] for parameter in study["parameters"]} >= {"lr", "dropout", "optimizer"}
    for row in [study["as_it_is"], *study["what_if"]]:
        for name in ("pruned_ratio", "trial_seconds", "trials_at_once"):
            assert row[name]["low"] <= row[name]["estimate"] <= row[name]["high"], (row["change"], name)
        counts = [first["trials"] for first in row["first"]]
        assert counts[0] == 10 and counts == sorted(set(counts)), row["change"]
    eight = next(row for row in study["what_if"] if row["change"] == "8 trials at once")
    assert eight["trials_at_once"]["low"] > 6 > study["as_it_is"]["trials_at_once"]["high"]
    told = headroom(stored, "study", "base.db", *TOLD, "--full", "--width", "160").stdout
    assert "of the trials pruned; a trial takes" in " ".join(told.split())


@pytest.mark.parametrize("storage, used, ended", [("warm.db", 25, 36), ("warm, other.db", 60, 96)])
def test_a_change_that_was_made_delivers(stored, storage, used, ended):
    answer = verified(stored, storage, "warm workers", code=0)
    assert answer["kept"] and answer["used"] == used and answer["ended"] == ended and not answer["goes_on"]
    found = figures(answer)
    assert found["trials_per_hour"]["kept"] and found["trial_seconds"]["wanted"]
    assert found["memory_at_once_bytes"]["kept"] is None and "--trial-memory" in found["memory_at_once_bytes"]["why"]
    text = headroom(stored, "verify", "plan.json", storage, "--applied", "warm workers", "--no-history").stdout
    assert text.startswith("warm workers. Kept: ") and all(len(line) <= 80 for line in text.splitlines())
    for name in ("verify.html", "verify.md"):
        headroom(stored, "verify", "plan.json", storage, "--applied", "warm workers", "--no-history", "--force", "-o", name)
        page = (stored / name).read_text("utf-8")
        assert text.splitlines()[0] in page and "trials/h" in page and "<script" not in page


def test_a_change_that_was_not_made_does_not(stored):
    unchanged = verified(stored, "other.db", "warm workers", code=1)
    assert not unchanged["kept"]
    answer = verified(stored, "other.db", "8 trials at once", code=1)
    assert answer["kept"] is False
    assert figures(answer)["trials_at_once"]["kept"] is False and figures(answer)["trials_at_once"]["wanted"]


def test_fewer_than_ten_trials_are_too_few_to_say(stored):
    answer = verified(stored, "few.db", "1", code=1)
    assert answer["kept"] is None and answer["figures"] == [] and answer["ended"] == 9 and answer["used"] == 0
    text = headroom(stored, "verify", "plan.json", "few.db", "--applied", "1", check=False).stdout
    assert "Too few to say: 9 trials ended before the last one began" in text and "Remembered" not in text


def continued(stored, path, trials, seconds):
    """The plan's own study with so many trials more, of so many seconds each, four at once."""
    import optuna
    shutil.copy(stored / "base.db", path)
    storage = study_support.sqlite_storage(path)
    study = optuna.load_study(study_name="sweep-1", storage=storage)
    template = study.trials[0]
    begin = max(trial.datetime_complete for trial in study.trials) + datetime.timedelta(minutes=1)
    for number in range(trials):
        template.state, template.values = optuna.trial.TrialState.PRUNED, None
        template.datetime_start = begin + datetime.timedelta(seconds=seconds * (number // 4) + number % 4)
        template.datetime_complete = template.datetime_start + datetime.timedelta(seconds=seconds - 4)
        study.add_trial(template)


def test_of_the_plans_own_study_only_what_came_after_it_counts(stored, tmp_path):
    none = verified(stored, "base.db", "warm workers", code=1)
    assert none["plans_own"] and none["since"] == 100 and none["ended"] == 0 and none["kept"] is None
    continued(stored, tmp_path / "on.db", 16, 600)
    slow = verified(stored, tmp_path / "on.db", "warm workers", code=1)
    assert slow["goes_on"] and slow["ended"] == 12 and slow["kept"] is False
    assert figures(slow)["trials_per_hour"]["measured"]["estimate"] < 30
    assert "before" in figures(slow)["time_to_best_seconds"]["why"]
    continued(stored, tmp_path / "fast.db", 18, 40)
    assert verified(stored, tmp_path / "fast.db", "warm workers", code=0)["kept"]
    later = verified(stored, tmp_path / "fast.db", "warm workers", "--since", "104", code=0)
    assert later["since"] == 104 and later["ended"] == 12


def test_other_work_is_not_comparable(stored, tmp_path):
    import optuna
    study = optuna.create_study(storage=study_support.sqlite_storage(tmp_path / "else.db"), study_name="sweep-1",
                                direction="maximize")
    for number in range(12):
        study.add_trial(optuna.trial.create_trial(
            params={"lr": 0.5}, distributions={"lr": optuna.distributions.FloatDistribution(0, 1)}, value=number))
    answer = verified(stored, tmp_path / "else.db", "warm workers", code=1)
    assert answer["kept"] is None and answer["figures"] == []
    assert any("MINIMIZE and MAXIMIZE" in text for text in answer["differences"])
    assert any("range of lr differs" in text for text in answer["differences"])
    assert any(text.startswith("the parameter dropout") for text in answer["differences"])
    other = verified(stored, "warm.db", "warm workers", "--pruner", "MedianPruner()", code=1)
    assert "--pruner" in other["why"]
    verified(stored, "warm.db", "warm workers", "--pruner", TOLD[1], code=0)


def test_what_is_required_of_a_study_is_judged(stored):
    kept = verified(stored, "warm.db", "warm workers", "--require", "failed_trials<=1000", code=0)
    assert [one["kept"] for one in kept["requirements"]] == [True]
    broken = verified(stored, "warm.db", "warm workers", "--require", "value<=-1e9", "--require", "peak_memory<22GB", code=1)
    assert broken["kept"] and [one["kept"] for one in broken["requirements"]] == [False, None]
    assert broken["requirements"][0]["of"].startswith("trial ")
    for limit, code in (("value<=1e9", 0), ("value<=-1e9", 1)):
        done = headroom(stored, "compare", "base.db", "warm.db", "--require", limit, "--json", check=False)
        assert done.returncode == code and held(done.stdout)["requirements"][0]["kept"] is (code == 0), done.stderr
    text = headroom(stored, "compare", "base.db", "warm.db", "--require", "value<=-1e9", check=False).stdout
    assert "Required\n  value<=-1e9  not kept: " in text
    wrong = headroom(stored, "compare", "base.db", "warm.db", "--require", "f1>0", check=False)
    assert wrong.returncode == 2 and "but value" in wrong.stderr and "failed_trials" in wrong.stderr


def test_the_outcome_is_in_the_history_of_predictions(stored, tmp_path):
    for _ in range(2):
        done = headroom(tmp_path, "verify", stored / "plan.json", stored / "warm.db", "--applied", "warm workers")
        assert "Remembered" in done.stdout
    learned = held(headroom(tmp_path, "verify", "--history", "--json").stdout)
    assert learned["causes"] == []
    (outcome,) = learned["outcomes"]
    assert outcome["option"] == "warm workers" and outcome["cause"] is None and outcome["kept"]
    assert outcome["predicted"]["low"] < outcome["measured"]["value"]
    text = headroom(tmp_path, "verify", "--history").stdout
    assert text.startswith("1 prediction verified.") and "warm workers" in text and "delivered" in text


@pytest.mark.parametrize("arguments, words", [
    (("plan.json", "warm.db"), ("which of the plan's changes", "(warm workers)")),
    (("plan.json", "warm.db", "--applied", "colder workers"), ("no change 'colder workers'", "--applied")),
    (("plan.json", "nothing.db", "--applied", "1"), ("nothing.db",)),
    (("plan.json", "warm.db", "--applied", "1", "--study", "nope"), ("nope", "sweep-1")),
    (("plan.json", "warm.db", "--applied", "1", "--pruner", "MedianPrunner()"), ("--pruner", "MedianPrunner")),
    (("plan.json", "warm.db", "--applied", "1", "--since", "-1"), ("--since",)),
    (("plan.json", "warm.db", "--applied", "1", "--require", "accuracy>=0.9"), ("no metric of this name", "value", "failed_trials")),
    (("plan.json", "warm.db", "--applied", "1", "--before", "r.hrec"), ("plan of a study", "--before")),
    (("plan.json", "warm.db", "--applied", "1", "-o", "x.txt"), ("x.txt", ".html")),
    (("facts.json", "warm.db", "--applied", "1"), ("facts.json", "no what-if", "-o plan.json")),
    (("two.json", "warm.db", "--applied", "1"), ("two.json", "2 studies", "--study NAME")),
    (("torn.json", "warm.db", "--applied", "1"), ("torn.json", "no JSON")),
])
def test_errors_say_what_where_and_what_next(stored, arguments, words):
    plan = json.loads((stored / "plan.json").read_text())
    (stored / "two.json").write_text(json.dumps({**plan, "studies": plan["studies"] * 2}))
    (stored / "torn.json").write_text((stored / "plan.json").read_text()[:-9])
    headroom(stored, "study", "base.db", "--no-what-if", "--force", "-o", "facts.json")
    done = headroom(stored, "verify", *arguments, check=False)
    assert done.returncode in (1, 2) and done.stdout == "" and done.stderr.startswith("headroom: "), done.stdout
    assert len(done.stderr.splitlines()) >= 2, "what next"
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_plan_of_a_recording_takes_no_option_of_a_study(tmp_path):
    recording = Made(4000).gpu(0, [(0, 2000)]).process(100, does=[(0, 4000, {"main": 1})], gpu=0)
    recording.write(tmp_path / "made.jsonl")
    headroom(tmp_path, "plan", "made.jsonl", "-o", "plan.json")
    done = headroom(tmp_path, "verify", "plan.json", "made.jsonl", "--study", "one", check=False)
    assert done.returncode == 2 and "plan of a recording" in done.stderr and "headroom study STORAGE -o" in done.stderr


def test_a_plan_is_replaced_by_a_plan_only(stored, tmp_path):
    (tmp_path / "plan.json").write_text('{"schema": "headroom.plan/1"}\n')
    done = headroom(tmp_path, "study", stored / "few.db", "-o", "plan.json", check=False)
    assert done.returncode == 2 and "--force" in done.stderr
    headroom(tmp_path, "study", stored / "few.db", "-o", "plan.json", "--force")
    headroom(tmp_path, "study", stored / "few.db", "-o", "plan.json")
    assert held((tmp_path / "plan.json").read_text())["studies"][0]["trials"] == 13


def test_two_studies_side_by_side(stored, tmp_path):
    answer = held(headroom(stored, "compare", "other.db", "warm, other.db", "--json").stdout)
    assert answer["comparable"] and answer["a"]["trials"] == 100 and answer["b"]["ended"] == 96
    assert answer["b"]["trials_per_hour"]["estimate"] > answer["a"]["trials_per_hour"]["estimate"]
    assert answer["b"]["trial_seconds"]["estimate"] < answer["a"]["trial_seconds"]["estimate"]
    answer = held(headroom(stored, "compare", "base.db", "warm.db", "--json").stdout)
    assert any("96 trials of A count, and 36 of B" in note for note in answer["notes"])
    text = headroom(stored, "compare", "base.db", "warm.db").stdout
    assert text.startswith("A is study sweep-1 of base.db") and "best value" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    headroom(stored, "compare", "base.db", "warm.db", "-o", tmp_path / "two.html")
    headroom(stored, "report", "base.db", "warm.db", "-o", tmp_path / "two.md")
    assert "A is study sweep-1 of base.db" in (tmp_path / "two.html").read_text()
    assert "| best value |" in (tmp_path / "two.md").read_text()
    both = tmp_path / "both.db"
    for seed in (1, 2):
        study_support.write_sqlite(study_support.virtual_sweep(BASE, seed, "random", 20), both)
    which = headroom(tmp_path, "compare", "both.db", "both.db", check=False)
    assert which.returncode == 2 and "--study-a sweep-1, sweep-2" in which.stderr
    named = held(headroom(tmp_path, "compare", "both.db", "both.db", "--study-a", "sweep-1", "--study-b", "sweep-2",
                          "--json").stdout)
    assert (named["a"]["study"], named["b"]["study"]) == ("sweep-1", "sweep-2")
    for arguments, word in ((("base.db", "last"), "last is no storage of Optuna"),
                            (("base.db", "warm.db", "--whole"), "no other option"),
                            (("last", "last", "--study-a", "x"), "last is no storage of Optuna")):
        done = headroom(stored, "compare", *arguments, check=False)
        assert done.returncode == 2 and word in done.stderr, done.stderr


def trial_of(number, begin, seconds, reports=4, failed=False):
    """One that a study may be given, with its times."""
    import optuna
    from optuna.trial import TrialState
    return optuna.trial.FrozenTrial(
        number=number, trial_id=0, value=None if failed else 1 / (number + 1),
        state=TrialState.FAIL if failed else TrialState.COMPLETE, datetime_start=begin,
        datetime_complete=begin + datetime.timedelta(seconds=seconds), params={}, distributions={}, user_attrs={}, system_attrs={},
        intermediate_values={step: 1.0 for step in range(0 if failed else reports)})


def sweep_in_a_recording(path, memory, notes=(), failing=False):
    """Sixteen trials, two at once, each a process of its own for 2 s; of 600 ms start-up, then with 1 GiB on the GPU."""
    import optuna
    begin = datetime.datetime.fromtimestamp(REALTIME / 1e9, datetime.timezone.utc).replace(tzinfo=None)
    study = optuna.create_study(storage=study_support.sqlite_storage(path / "study.db"), study_name="recorded")
    made = Made(16_000, tiers="NP").gpu(0, [(600, 16_000)], memory=memory)
    made.process(100, cmdline="python3 sweep.py")
    for number in range(16):
        start = number // 2 * 2000 + number % 2 * 10
        study.add_trial(trial_of(number, begin + datetime.timedelta(milliseconds=start), 1.9, failed=failing and number % 3 == 0))
        made.process(101 + number, 100, start + 50, start + 1850, gpu=0, sm=lambda at, first=start + 600: float(at > first))
    for at in notes:
        made.event(at, "note", text="GPU memory, by its output: torch.OutOfMemoryError: CUDA out of memory.")
    made.write(path / "made.jsonl")


def test_a_recording_says_which_trials_ran_out_of_memory(tmp_path):
    sweep_in_a_recording(tmp_path, 1 << 30, notes=[1950, 1960, 9000], failing=True)
    arguments = ("study", "study.db", "made.jsonl", "--tz", "UTC", "--no-what-if")
    (study,) = held(headroom(tmp_path, *arguments, "--json").stdout)["studies"]
    assert study["recording"]["memory_at_once_bytes"] == 2 << 30
    assert [(group["said_out_of_memory"], group["memory_full"]) for group in study["failures"]] == [(2, 0)]
    assert "out of GPU memory by the output: at least 2 of these" in " ".join(headroom(tmp_path, *arguments).stdout.split())
    (tmp_path / "full").mkdir()
    sweep_in_a_recording(tmp_path / "full", 50 << 30, failing=True)
    (study,) = held(headroom(tmp_path / "full", *arguments, "--json").stdout)["studies"]
    assert [(group["failed"], group["memory_full"]) for group in study["failures"]] == [(6, 6)]


def test_memory_is_verified_by_a_recording(stored, tmp_path):
    sweep_in_a_recording(tmp_path, 1 << 30)
    told = ("--tz", "UTC", "--cores", "8", "--replays", "5")
    headroom(tmp_path, "study", "study.db", "made.jsonl", *told, "-o", "plan.json")
    (study,) = json.loads((tmp_path / "plan.json").read_text())["studies"]
    four = next(row for row in study["what_if"] if row["change"] == "4 trials at once")
    assert four["memory_at_once_bytes"] == {"estimate": 4 << 30, "low": 4 << 30, "high": 4 << 30}
    assert four["why_safety"].startswith("memory: 4 x 1024 MiB of 48.0 GiB"), "the recording has the GPU's size"
    shutil.copy(tmp_path / "study.db", tmp_path / "new.db")  # it has the plan's name and begin: all of it counts by --since 0
    for recording, kept in (((), None), (("made.jsonl",), True)):
        done = headroom(tmp_path, "verify", "plan.json", "new.db", *recording, "--applied", "4 trials at once", "--since", "0",
                        "--no-history", "--json", check=False)
        memory = figures(held(done.stdout))["memory_at_once_bytes"]
        assert memory["kept"] is kept and memory["wanted"], memory
    assert memory["measured"]["estimate"] == 2 << 30


def test_when_several_at_once_began_and_which_trials_were_random(tmp_path):
    import optuna
    begin = datetime.datetime(2026, 3, 2, 9)
    study = optuna.create_study(storage=study_support.sqlite_storage(tmp_path / "study.db"))
    for number in range(30):
        after = 100 * number if number < 6 else 550 + 25 * (number - 6)
        study.add_trial(trial_of(number, begin + datetime.timedelta(seconds=after), 95))
    text = " ".join(headroom(tmp_path, "study", "study.db", "--sampler", "TPESampler", "--full").stdout.split())
    assert "One trial at a time until trial 6 began, after 9:10; then up to 4 at once." in text
    assert "draws at random until 10 trials have completed or were pruned, here its first 13" in text
    (answer,) = held(headroom(tmp_path, "study", "study.db", "--sampler", "TPESampler", "--json").stdout)["studies"]
    assert answer["parallelism"]["parallel_since"] == {"trial": 6, "since_begin_seconds": 550, "running_max": 4}
    assert answer["random_start"] == {"needed": 10, "per_bracket": False, "trials": 13}
