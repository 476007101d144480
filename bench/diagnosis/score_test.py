#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The scorer is held to truths and answers whose score is known; a wrong answer must be scored wrong."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import jobs as random_jobs  # noqa: E402
import score  # noqa: E402
import sensitivity  # noqa: E402
import summary  # noqa: E402
import truth  # noqa: E402

SECOND = 1_000_000_000
GPU = "GPU-1"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def folder_of(where, changes, busy, *, labels=(), causes=(), burners=0, shape="plain", end=10):
    """A job's folder: one process from second 0 to `end`, of a recording from -1 to 10 (instants in seconds)."""
    folder = pathlib.Path(where)
    (folder / "truth").mkdir(exist_ok=True)
    job = {"burners": burners, "labels": dict(labels), "causes": list(causes), "shape": shape, "simjob": [], "spec": {}}
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "result.json").write_text('{"exit_code": 0, "machine_cores": 0.3}')
    process = {"pid": 7, "role": "job", "begin": 0, "end": end * SECOND if end else None,
               "changes": [[int(at * SECOND), label] for at, label in changes],
               "devices": [{"uuid": GPU, "busy": [[int(b * SECOND), int(e * SECOND)] for b, e in busy],
                            "asked_ns": 5, "kernel_ns": 5}]}
    (folder / "truth" / "process-7.json").write_text(json.dumps(process))
    return folder


def ledger(**accounts):
    """From second -1 to 10, of one GPU."""
    return {"budget_ns": 11 * SECOND, "begin_ns": -SECOND, "end_ns": 10 * SECOND,
            "accounts": [{"device": GPU, "cause": cause, "ns": int(ns * SECOND)} for cause, ns in accounts.items()]}


def finding(cause=None, candidates=(), seconds=3.0, confidence="medium", **more):
    return {"cause": cause, "candidates": list(candidates), "title": "t", "device_seconds": seconds,
            "confidence": confidence, "told_apart_from": [], "bound": "", **more}


def answer(findings, accounts, bound=None):
    return {"ledger": accounts, "findings": findings, "bound": {"speedup_high": bound} if bound else None}


# Kernels from 1 to 4 and from 7 to 9; in between and after it the main thread builds graphs.
CHANGES = [[0, "loop"], [4, "graph"], [7, "loop"], [9, "graph"]]
BUSY = [[1, 4], [7, 9]]
RIGHT = {"no_task": 1, "startup": 1, "useful": 5, "host": 3, "teardown": 1}


class TruthOfAJob(unittest.TestCase):
    def setUp(self):
        self.where = tempfile.TemporaryDirectory()
        self.addCleanup(self.where.cleanup)

    def of(self, accounts=None, **how):
        return truth.of(folder_of(self.where.name, CHANGES, BUSY, **how), ledger(**(accounts or RIGHT)))

    def test_time_outside_kernels_is_what_the_main_thread_did(self):
        items = {item.accounts: item.ns / SECOND for item in self.of().devices[GPU]}
        self.assertEqual(items, {("no_task", "startup", "teardown"): 1, ("useful",): 5, ("startup",): 1, ("host",): 3,
                                 ("teardown", "host"): 1})

    def test_a_wait_for_a_core_is_a_cause_of_what_lies_outside_kernels(self):
        folder = folder_of(self.where.name, CHANGES, BUSY)
        file = folder / "truth" / "process-7.json"
        process = json.loads(file.read_text())
        for change, waited in zip(process["changes"], (0, 0, 2, 4)):  # 2 s of the graph's 3, and 2 s beside kernels
            change.append(waited * SECOND)
        file.write_text(json.dumps(process))
        of = truth.of(folder, ledger(**RIGHT))
        between = {item.causes: item.ns / SECOND for item in of.devices[GPU] if item.accounts == ("host",)}
        self.assertEqual(between, {("host_graph_building",): 1, ("host_graph_building", "cpu_oversubscribed"): 2})

    def test_it_sums_to_the_budget(self):
        self.assertEqual(self.of().budget(), 11 * SECOND)
        self.assertEqual(self.of(end=None).budget(), 11 * SECOND)

    def test_the_cause_is_the_one_of_the_most_time(self):
        self.assertEqual(self.of().primary()[0], "host_graph_building")
        self.assertEqual(self.of(labels={"graph": "loop"}).primary(), ("startup_load",))

    def test_a_lack_of_cores_is_right_too_where_others_took_them(self):
        self.assertEqual(self.of(burners=2).primary()[:2], ("host_graph_building", "cpu_oversubscribed"))
        self.assertNotIn("cpu_oversubscribed", self.of().primary())

    def test_the_gain_removes_the_time_of_the_cause_and_nothing_else(self):
        self.assertAlmostEqual(self.of().gain("host_graph_building"), 11 / 7)  # with what followed its last kernel
        self.assertAlmostEqual(self.of().whole_gain(), 11 / 5)

    def test_what_follows_the_last_kernel_belongs_to_its_cause(self):
        self.assertEqual({causes: ns / SECOND for causes, ns in self.of().by_causes().items()},
                         {("startup_load",): 1, ("host_graph_building", "unreleased_after_work"): 4})

    def test_two_processes_that_share_a_gpu_are_one_in_its_ledger(self):
        folder = folder_of(self.where.name, [[0, "loop"]], [[1, 6]])
        other = json.loads((folder / "truth" / "process-7.json").read_text())
        other.update(pid=8, devices=[dict(other["devices"][0], busy=[[2 * SECOND, 9 * SECOND]])])
        (folder / "truth" / "process-8.json").write_text(json.dumps(other))
        self.assertEqual(truth.of(folder, ledger(**RIGHT)).busy(), 8 * SECOND)

    def test_a_job_that_hangs_has_that_cause_whatever_its_kernels_did(self):
        folder = folder_of(self.where.name, [[0, "loop"]], [[1, 10]], causes=["hang", "straggler"])
        self.assertEqual(truth.of(folder, ledger(**RIGHT)).primary(), ("hang", "straggler"))

    def test_kernels_that_did_not_run_make_the_truth_doubtful(self):
        folder = folder_of(self.where.name, CHANGES, BUSY)
        self.assertEqual(truth.Job(folder).doubts(), [])
        file = folder / "truth" / "process-7.json"
        file.write_text(file.read_text().replace('"kernel_ns": 5', '"kernel_ns": 4'))
        self.assertEqual(len(truth.Job(folder).doubts()), 1)


class ScoreOfAnAnswer(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.truth = truth.of(folder_of(where.name, CHANGES, BUSY), ledger(**RIGHT))

    def score(self, findings, accounts=None, bound=None):
        return score.score(self.truth, answer(findings, ledger(**(accounts or RIGHT)), bound))

    def test_a_right_answer_has_nothing_against_it(self):
        row = self.score([finding("host_graph_building", seconds=3, bound="1.57x at most, if so")], bound=2.2)
        self.assertEqual((row["first"], row["in_three"], row["busy_error"], row["wrong_account"], row["unexplained"]),
                         ("exact", True, 0, 0, 0))
        self.assertEqual((row["wrong_single"], row["denials"], row["broken"], row["false_alarms"]), ([], [], [], []))
        self.assertTrue(row["sums"])
        self.assertLess(summary.badness(dict(row, recording="r")), 1e-9)

    def test_wrong_accounts_and_wrong_busy_time_are_counted_in_points_of_the_budget(self):
        row = self.score([], {"no_task": 1, "startup": 1, "useful": 4, "input": 4, "teardown": 1})
        self.assertAlmostEqual(row["busy_error"], 100 / 11)
        self.assertAlmostEqual(row["wrong_account"], 400 / 11)

    def test_time_left_unexplained_is_counted_where_it_could_be_explained(self):
        row = self.score([], {"no_task": 1, "startup": 1, "useful": 5, "host": 1, "unexplained": 2, "teardown": 1})
        self.assertAlmostEqual(row["unexplained"], 200 / 11)

    def test_a_ledger_that_does_not_sum_is_seen(self):
        self.assertFalse(self.score([], {"useful": 5})["sums"])

    def test_first_findings_are_told_apart(self):
        for findings, kind in [([], "none"), ([finding("slow_storage")], "wrong"),
                               ([finding(None, ["host_graph_building", "launch_bound"])], "set with it"),
                               ([finding(None, ["slow_storage", "launch_bound"])], "set without it"),
                               ([finding("sensor_outlier", seconds=0), finding("host_graph_building")], "exact"),
                               ([finding("slow_storage", part_of=1), finding("host_graph_building")], "exact")]:
            self.assertEqual(self.score(findings)["first"], kind, findings)

    def test_a_single_wrong_cause_counts_unless_it_says_that_it_is_unsure(self):
        self.assertEqual(self.score([finding("slow_storage")])["wrong_single"], ["slow_storage"])
        self.assertEqual(self.score([finding("slow_storage", confidence="low")])["wrong_single"], [])
        self.assertEqual(self.score([finding("startup_load")])["wrong_single"], [])  # it cost a tenth

    def test_only_the_first_three_findings_count_as_an_answer(self):
        others = [finding("slow_storage", confidence="low")] * 3
        self.assertFalse(self.score([*others, finding("host_graph_building")])["in_three"])

    def test_a_denial_of_the_true_cause_counts_where_the_time_is_claimed_for_another(self):
        denies = finding("slow_storage", told_apart_from=["host code and input: neither was busy"])
        self.assertEqual(len(self.score([denies])["denials"]), 1)
        self.assertEqual(self.score([dict(denies, told_apart_from=["validation: no"])])["denials"], [])
        # About the start alone it is no denial: no more time is claimed than the start took.
        start = finding("startup_load", seconds=1, told_apart_from=["input and host code: no kernel had run yet"])
        self.assertEqual(self.score([start])["denials"], [])

    def test_a_sentence_that_nobody_knows_is_said(self):
        self.assertEqual(self.score([finding("slow_storage", told_apart_from=["gremlins: none seen"])])["unknown_denials"],
                         ["gremlins: none seen"])

    def test_a_bound_below_the_true_gain_is_broken(self):
        self.assertEqual(len(self.score([finding("host_graph_building", bound="1.40x at most, if so")])["broken"]), 1)
        self.assertEqual(self.score([finding("host_graph_building", bound="1.52x at most, if so")])["broken"], [])
        self.assertEqual(len(self.score([finding("host_graph_building", bound_speedup=1.4)])["broken"]), 1)
        self.assertEqual(self.score([finding("slow_storage", bound="1.01x at most")])["broken"], [])
        self.assertEqual(len(self.score([], bound=2.0)["broken"]), 1)

    def test_claims_beyond_the_idle_time_are_double(self):
        twice = [finding("host_graph_building", seconds=4), finding("slow_storage", seconds=4)]
        self.assertAlmostEqual(self.score(twice)["double_claim"], 100 * 2 / 11)
        self.assertEqual(self.score([twice[0], dict(twice[1], part_of=0)])["double_claim"], 0)

    def test_an_alarm_on_a_healthy_job_is_false(self):
        with tempfile.TemporaryDirectory() as where:
            healthy = truth.of(folder_of(where, [[-0.9, "loop"]], [[0, 10]]), ledger(no_task=1, useful=10))
        for findings, alarms in [([finding("healthy", seconds=0)], 0), ([finding("slow_storage")], 1),
                                 ([finding(None, ["launch_bound", "batch_too_small"], seconds=0)], 0)]:
            row = score.score(healthy, answer(findings, ledger(no_task=1, useful=10)))
            self.assertEqual((row["fault"], len(row["false_alarms"])), (False, alarms), findings)


class AKnownRecording(unittest.TestCase):
    """The golden recording of examples/train.py: 450 steps of 8 ms, and a loader that is too slow for them. What its short
    validations took was not kept, so its bound cannot be held against anything."""

    HEADROOM = pathlib.Path(os.environ.get("HEADROOM_BUILD", ROOT / "build" / "dev")) / "src" / "cli" / "headroom"
    RECORDING = ROOT / "tests" / "golden" / "input_bound" / "run.hrec.jsonl"

    def why(self, *options, check=True):
        return subprocess.run([self.HEADROOM, "why", self.RECORDING, *options], capture_output=True, text=True, check=check)

    def score(self, label):
        said = json.loads(self.why("--json").stdout)
        begin, end = said["ledger"]["begin_ns"], said["ledger"]["end_ns"]
        first = begin + 308_000_000
        every = (end - first) // 450
        with tempfile.TemporaryDirectory() as where:
            folder = folder_of(where, [], [])
            file = folder / "truth" / "process-7.json"
            process = json.loads(file.read_text())
            busy = [[first + every * step, first + every * step + 8_000_000] for step in range(450)]
            process["devices"][0].update(uuid=said["ledger"]["accounts"][0]["device"], busy=busy)
            process.update(begin=begin, end=end, changes=[[begin, label]])
            file.write_text(json.dumps(process))
            return score.score(truth.of(folder, said["ledger"]), said)

    def test_the_truth_is_found(self):
        row = self.score("workers_cpu")
        self.assertEqual((row["first"], row["in_three"], row["wrong_single"], row["denials"]), ("exact", True, [], []))
        self.assertLess(row["busy_error"], 0.3)
        self.assertLess(row["wrong_account"], 4)

    def test_were_it_otherwise_the_same_answer_would_be_wrong(self):
        row = self.score("input_disk")
        self.assertEqual((row["first"], row["in_three"], row["wrong_single"]), ("wrong", False, ["input_too_few_workers"]))
        self.assertEqual(len(row["denials"]), 1)
        row = self.score("validation")
        self.assertGreater(row["wrong_account"], 60)


    def test_a_threshold_decides_what_is_said(self):
        listed = {row["name"]: row["value"] for row in sensitivity.thresholds(self.HEADROOM, None, self.RECORDING)}
        self.assertEqual(json.loads(self.why("--json").stdout),
                         json.loads(self.why("--json", "--threshold", f"material={listed['material']}").stdout))
        self.assertEqual(json.loads(self.why("--json", "--threshold", "material=0.9").stdout)["findings"], [])
        refused = self.why("--threshold", "no_such=1", check=False)
        self.assertIn("no_such", refused.stderr)
        self.assertEqual((refused.returncode, self.why("--threshold", "material=", check=False).returncode), (2, 2))


class Matching(unittest.TestCase):
    def test_time_moves_to_where_both_are_right(self):
        items = [truth.Item(4, ("host", "input")), truth.Item(4, ("host",))]
        self.assertEqual(score.matched(items, {"host": 4, "input": 4}), 8)
        self.assertEqual(score.matched(items, {"host": 8}), 8)
        self.assertEqual(score.matched(items, {"input": 8}), 4)

    def test_it_moves_in_chains(self):
        items = [truth.Item(3, ("a", "b")), truth.Item(3, ("b", "c")), truth.Item(3, ("a",))]
        self.assertEqual(score.matched(items, {"a": 3, "b": 3, "c": 3}), 9)


class Thresholds(unittest.TestCase):
    def test_what_moved_is_counted(self):
        before = answer([finding("slow_storage")], ledger(useful=5, host=6))
        after = copy.deepcopy(answer([finding("validation")], ledger(useful=5, host=3, input=3)))
        self.assertEqual(sensitivity.compare({"job": before}, {"job": after}), (1, 1, 3 / 11))
        self.assertEqual(sensitivity.compare({"job": before}, {"job": before}), (0, 0, 0))


    def test_a_ratio_is_doubled_to_one_at_most(self):
        self.assertEqual(sensitivity.changed({"value": 0.6, "unit": "ratio"}, 2), 1)
        self.assertEqual(sensitivity.changed({"value": 0.6, "unit": "ratio"}, 0.5), 0.3)
        self.assertEqual(sensitivity.changed({"value": 10, "unit": "seconds"}, 2), 20)


class Jobs(unittest.TestCase):
    def test_the_same_seed_makes_the_same_jobs_and_another_set_others(self):
        self.assertEqual(random_jobs.make("tune", 1, 60), random_jobs.make("tune", 1, 60))
        self.assertNotEqual(random_jobs.make("tune", 1, 60), random_jobs.make("confirm", 1, 60))

    def test_every_word_of_a_specification_is_one_that_a_program_reads(self):
        programs = "".join((pathlib.Path(__file__).parent / f"{name}.py").read_text()
                           for name in ("trainer", "loaders", "sources", "runner"))
        known = set(re.findall(r"""["'](\w+)["']""", programs))
        for job in random_jobs.make("tune", 1, len(random_jobs.FAMILIES)):
            for spec in [job.spec, *job.spec.get("tasks", []), job.spec.get("slow", {}), job.spec.get("others", {})]:
                self.assertEqual(set(spec) - known, set(), job.family)
            for label in job.labels.values():
                self.assertIn(label, truth.KINDS, job.family)

    def test_thirty_families_are_well(self):
        healthy = [job for job in random_jobs.make("tune", 1, len(random_jobs.FAMILIES)) if "healthy" in job.family]
        self.assertGreaterEqual(len(healthy), 30)
        self.assertEqual([job.name for job in healthy if job.causes], [])

    def test_every_cause_of_a_label_is_one_that_headroom_names(self):
        source = (ROOT / "src" / "model" / "catalogue.cc").read_text()
        for label, kind in truth.KINDS.items():
            for cause in kind.causes:
                self.assertIn(f'"{cause}"', source, label)


if __name__ == "__main__":
    unittest.main()
