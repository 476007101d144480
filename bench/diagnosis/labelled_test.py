#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Labelled jobs, their tiers, and each of their scores, on truths and answers made up for it."""
import json
import pathlib
import re
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import baselines  # noqa: E402
import cases  # noqa: E402
import catalogue  # noqa: E402
import faults  # noqa: E402
import grades  # noqa: E402
import injected  # noqa: E402
import labelled  # noqa: E402
import shares  # noqa: E402
import tables  # noqa: E402
import tiers  # noqa: E402
import truth  # noqa: E402
from score_test import GPU, ROOT, SECOND, answer, finding, ledger  # noqa: E402

CATALOGUE = dict(re.findall(r'\.id = "(\w+)",\s*\.number = "(A\d+)"', (ROOT / "src" / "model" / "catalogue.cc").read_text()))


def case(cause="validation", gain=(), inside=None, waited=0.0, items=None, **label):
    """11 s of one GPU: 6 busy, 4 of validation, 1 s of start; without the validation 1.57x."""
    items = items or [truth.Item(6 * SECOND, ("useful",)), truth.Item(4 * SECOND, ("host",), ("validation",)),
                      truth.Item(SECOND, ("startup",), ("startup_load",))]
    label = {"cause": cause, "severity": "above", "workload": "plain", "cores": 2, "seed": "1", **label}
    return cases.Case("made-up", label, "", truth.Truth({GPU: items}, 11 * SECOND, {}), [],
                      {**dict.fromkeys([*cases.GROUPS, "busy"], 0.0), **(inside or {})}, list(gain), list(gain), [],
                      {"waited": waited})


ACCOUNTS = ledger(useful=6, host=4, startup=1)
WELL = [truth.Item(11 * SECOND, ("useful",))]


def said(*findings, util=0.5, memory=0.2):
    metrics = {"gpu_util_ratio": {"mean": util}, "memory_used_bytes": {"max": memory * 1000}}
    return dict(answer(list(findings), ACCOUNTS), devices=[{"memory_total_bytes": 1000, "metrics": metrics}])


def found(cause=None, candidates=(), gain=None, **more):
    return finding(cause, candidates, share=0.36, gain=gain and {"low": gain[0], "high": gain[1]}, **more)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.jobs = injected.jobs(1)

    def test_every_cause_of_the_catalogue_is_injected_or_said_why_not(self):
        self.assertEqual(set(faults.FAULTS) | set(faults.NOT_INJECTED), set(CATALOGUE))
        self.assertEqual(set(faults.FAULTS) & set(faults.NOT_INJECTED), set())
        self.assertGreaterEqual(len(faults.FAULTS), 25)

    def test_each_in_three_severities_two_workloads_and_two_hosts_and_sixty_are_well(self):
        kinds = {(one.job.label["cause"], one.job.label["severity"], one.job.label["workload"], one.job.label["cores"])
                 for one in self.jobs if one.job.label["cause"] != "healthy"}
        self.assertEqual(len(kinds), len(faults.FAULTS) * 3 * 2 * 2)
        self.assertGreaterEqual(sum(one.job.label["cause"] == "healthy" for one in self.jobs), 60)
        self.assertEqual(len({one.job.name for one in self.jobs}), len(self.jobs))

    def test_a_seed_makes_the_same_jobs_again_and_another_one_others(self):
        self.assertEqual(self.jobs, injected.jobs(1))
        self.assertNotEqual(self.jobs, injected.jobs(2))

    def test_a_mended_job_does_the_same_work(self):
        def work(job):
            ranks = job.spec.get("ranks", 1)
            return sum(task["steps"] * task.get("times", 1) * (0 if task.get("fails") else 1)
                       for task in job.spec.get("tasks", [job.spec])) * ranks

        for one in self.jobs:
            if one.mended:
                self.assertNotEqual(one.job.spec if one.job.shape == one.mended.shape and one.job.faults == one.mended.faults
                                    and one.job.burners == one.mended.burners else None, one.mended.spec, one.job.name)
                self.assertEqual(work(one.job), work(one.mended), one.job.name)
                self.assertEqual(one.job.label["mended"], one.mended.name)

    def test_a_worse_severity_wastes_more(self):
        graphs = {one.job.label["severity"]: one.job.spec["graph_ms"] for one in self.jobs
                  if one.job.name.startswith("host_graph_building") and one.job.name.endswith("plain-2")}
        self.assertLess(graphs["below"], graphs["at"])
        self.assertLess(graphs["at"], graphs["above"])

    def test_parts_are_disjoint_and_together_all(self):
        parts = [[one.job.name for one in labelled.selected(1, part=f"{number}/5")] for number in range(1, 6)]
        self.assertEqual(sorted(sum(parts, [])), sorted(one.job.name for one in self.jobs))

    def test_every_word_of_a_specification_is_one_that_a_program_reads(self):
        programs = "".join((pathlib.Path(__file__).parent / f"{name}.py").read_text()
                           for name in ("trainer", "loaders", "sources", "runner", "torch_workload"))
        known = set(re.findall(r"""["'](\w+)["']""", programs))
        for one in self.jobs:
            for job in filter(None, (one.job, one.mended)):
                for spec in [job.spec, *job.spec.get("tasks", []), job.spec.get("slow", {})]:
                    self.assertEqual(set(spec) - known, set(), job.name)
                for label in job.labels.values():
                    self.assertIn(label, truth.KINDS, job.name)

    def test_families_are_those_of_the_catalogue(self):
        self.assertEqual(set(catalogue.OF_CAUSE) - {"healthy"}, set(CATALOGUE))
        self.assertEqual(catalogue.families(["validation", "checkpoint_sync"]), {"phases"})


class Tiers(unittest.TestCase):
    ENTRIES = [
        {"recording": 1, "meta": {"tiers": "NPYL"}},
        {"source": 0, "kind": "recorder", "key": "recorder"},
        {"source": 1, "kind": "process", "key": "7/1", "attrs": {"pid": "7", "start_ns": "1", "comm": "python3"}},
        {"source": 2, "kind": "process", "key": "8/1", "parent": 1, "attrs": {"pid": "8"}},
        {"source": 3, "kind": "python_thread", "key": "7/1/7", "parent": 1},
        {"source": 4, "kind": "gpu", "key": GPU},
        {"source": 5, "kind": "gpu_process", "key": f"{GPU}/7/1", "parent": 4},
        {"event": "process_start", "at": 1, "source": 1},
        {"event": "job_start", "at": 1},
        {"row": [1, 2, {"threads": 1}]}, {"row": [4, 2, {"gpu_util_ratio": 0.5}]}, {"list_row": [3, 2, 0, 1]}]

    def kept(self, some):
        return [json.loads(line) for line in tiers.kept([json.dumps(entry) for entry in self.ENTRIES], some)]

    def test_all_tiers_are_the_recording_itself(self):
        self.assertEqual([entry for entry in self.kept("NPYL") if "recording" not in entry], self.ENTRIES[1:])

    def test_without_proc_a_process_on_a_gpu_is_a_number(self):
        left = self.kept("N")
        self.assertEqual(left[0]["meta"]["tiers"], "N")
        self.assertEqual([entry["key"] for entry in left if "key" in entry], ["recorder", "7/1", GPU, f"{GPU}/7/1"])
        self.assertEqual([entry["source"] for entry in left if "key" in entry], [0, 1, 2, 3])
        self.assertEqual(left[2]["attrs"], {"pid": "7", "start_ns": "1"})
        self.assertEqual(left[4]["parent"], 2)
        self.assertEqual([entry for entry in left if "row" in entry or "list_row" in entry],
                         [{"row": [2, 2, {"gpu_util_ratio": 0.5}]}])
        self.assertEqual([entry["event"] for entry in left if "event" in entry], ["job_start"])

    def test_with_proc_stacks_are_missing_only(self):
        left = self.kept("NP")
        self.assertEqual(sum(1 for entry in left if "row" in entry), 2)
        self.assertEqual(sum(1 for entry in left if "list_row" in entry), 0)


class Grades(unittest.TestCase):
    def test_a_right_single_cause_is_top_one_and_a_set_is_not(self):
        row = grades.grade(case(), said(found("validation")))
        self.assertEqual((row["first"], row["in_three"], row["family"], row["regret"]), ("exact", True, True, None))
        self.assertAlmostEqual(row["lost"], 4 / 11)
        row = grades.grade(case(), said(found(None, ["epoch_end_host_work", "validation"])))
        self.assertEqual((row["first"], row["in_three"], row["family"]), ("set with it", True, True))

    def test_a_sibling_is_no_wrong_family(self):
        self.assertTrue(grades.grade(case(), said(found("checkpoint_sync")))["family"])
        self.assertFalse(grades.grade(case(), said(found("slow_storage")))["family"])
        self.assertIsNone(grades.grade(case(), said())["family"])

    def test_what_is_well_is_right_without_an_accusation(self):
        self.assertEqual(grades.grade(case("healthy", items=WELL), said())["first"], "exact")
        row = grades.grade(case("healthy", items=WELL), said(found("slow_storage")))
        self.assertEqual((row["fault"], row["first"], len(row["false_alarms"])), (False, "wrong", 1))

    def test_a_gain_inside_its_interval_is_covered(self):
        def graded(low, high, real):
            return grades.grade(case(gain=real), said(found("validation", gain=(low, high))))["gain"]

        self.assertTrue(graded(1.2, 1.6, (1.5, 1.5))["covered"])
        promise = graded(1.4, 1.6, (1.1, 1.2))
        self.assertEqual((promise["covered"], promise["over_promise"], promise["beyond"]), (False, True, False))
        more = graded(1.0, 1.2, (1.4, 1.5))
        self.assertEqual((more["covered"], more["over_promise"], more["beyond"]), (False, False, True))
        self.assertTrue(graded(1.2, 1.3, (1.0, 1.01))["false_urgency"])
        self.assertTrue(graded(1.0, 12.0, (1.04, 1.13))["too_wide"])
        self.assertFalse(graded(1.0, 5.0, (1.0, 1.1))["too_wide"])
        self.assertTrue(graded(1.25, 1.3, (1.2, 1.2))["covered"])  # two runs differ by so much
        self.assertIsNone(grades.grade(case(gain=(1.5, 1.5)), said(found("slow_storage", gain=(1, 2))))["gain"])

    def test_regret_is_what_another_advice_would_have_brought_more(self):
        mended = case(gain=(1.5, 1.5))
        best = 11 / 7  # as the truth has it
        self.assertAlmostEqual(grades.grade(mended, said(found("validation")))["regret"], best / 1.5 - 1)
        self.assertAlmostEqual(grades.grade(mended, said(found("startup_load")))["regret"], best / 1.1 - 1)
        self.assertAlmostEqual(grades.grade(mended, said())["regret"], best - 1)

    def test_a_plan_is_asked_for_the_option_of_the_cause(self):
        plan = {"options": [{"cause": None, "candidates": ["slow_storage"], "gain": {"low": 1, "high": 2}},
                            {"cause": "validation", "gain": {"low": 1.1, "high": 1.4}}]}
        self.assertEqual(grades.planned(plan, "validation"), [1.1, 1.4])
        self.assertEqual(grades.planned(plan, "slow_storage"), [1, 2])
        self.assertIsNone(grades.planned(None, "validation"))
        self.assertEqual((grades.highest(plan), grades.highest({"options": [{"gain": None}]})), (2, 1))

    def test_precision_and_recall_are_of_what_cost_five_percent(self):
        row = grades.grade(case(), said(found("validation"), found("slow_storage")))
        self.assertEqual(row["material"], (1, 2, 1, 2))  # start-up cost 9 % and is not named

    def test_waits_for_a_core_make_a_recording_restless(self):
        self.assertTrue(grades.grade(case(), said())["calm"])
        self.assertFalse(grades.grade(case(waited=0.06), said())["calm"])


class Baselines(unittest.TestCase):
    def first(self, name, util=0.5, memory=0.2, workers=False, **inside):
        one = case(inside=inside)
        one.facts["workers"] = workers
        return baselines.RULES[name](baselines.seen(one, said(util=util, memory=memory))).causes[:1]

    def test_thresholds(self):
        for name, shares_of, cause in [
                ("TensorBoard", {"input": 0.06}, "input_in_main_process"), ("TensorBoard", {"input": 0.06, "workers": True},
                                                                            "input_too_few_workers"),
                ("TensorBoard", {"input": 0.04, "util": 0.4}, "batch_too_small"), ("TensorBoard", {"input": 0.04}, "healthy"),
                ("TensorBoard", {"memory": 0.95}, "memory_limited"), ("TensorBoard", {"peer": 0.11}, "exposed_communication"),
                ("TensorFlow", {"input": 0.049, "launch": 0.029}, "healthy"), ("TensorFlow", {"launch": 0.04}, "launch_bound"),
                ("TensorFlow", {"input": 0.06}, "input_in_main_process"), ("TraceML", {"input": 0.09}, "healthy"),
                ("TraceML", {"input": 0.11}, "input_in_main_process"), ("TraceML", {"peer": 0.3, "input": 0.2}, "straggler"),
                ("ICSE'24 rules", {"util": 0.4}, "batch_too_small"), ("ICSE'24 rules", {"util": 0.6}, "healthy"),
                ("ICSE'24 rules", {"util": 0.4, "memory": 0.9}, "memory_limited"), ("ICSE'24 order", {}, "pageable_copies"),
                ("1/utilisation", {}, "batch_too_small"), ("no gain", {}, "healthy")]:
            self.assertEqual(self.first(name, **shares_of), (cause,), (name, shares_of))

    def test_they_are_graded_as_headroom_is(self):
        row = grades.grade_baseline(case(gain=(1.5, 1.5)), said(util=0.5), baselines.one_over_util)
        self.assertEqual((row["first"], row["gain"]["stated"], row["gain"]["over_promise"]), ("wrong", [2.0, 2.0], True))
        row = grades.grade_baseline(case("healthy", items=WELL), said(util=1.0), baselines.tensorboard)
        self.assertEqual((row["first"], row["false_alarms"]), ("exact", []))
        row = grades.grade_baseline(case("healthy", items=WELL), said(), baselines.icse_prior)
        self.assertEqual(len(row["false_alarms"]), 3)


class Tables(unittest.TestCase):
    def test_wilson_is_that_of_the_books(self):
        self.assertAlmostEqual(shares.wilson(0, 60)[1], 0.060, 3)
        self.assertEqual([round(edge, 3) for edge in shares.wilson(8, 10)], [0.490, 0.943])
        self.assertEqual(shares.percent(3, 0), "-")
        self.assertEqual(shares.percent(8, 10), "80 % (49-94), 8/10")
        self.assertEqual((shares.median([3, 1, 2]), shares.median([4, 1]), shares.median([])), (2, 2.5, None))

    def rows(self):
        return [grades.grade(case(), said(found("validation", confidence="high"))),
                grades.grade(case(), said(found("slow_storage")))]

    def test_sums(self):
        lines = dict(tables.answer_lines(self.rows()))
        self.assertTrue(lines["top-1: a single cause, the right one"].endswith("1/2"))
        self.assertTrue(lines["wrong family first"].endswith("1/2"))
        self.assertTrue(lines["single wrong cause, medium or high confidence"].endswith("1/2"))
        self.assertEqual(tables.weighted(self.rows()), "50 %")
        self.assertEqual(tables.macro_f1(self.rows()), "0.67 over 1 causes")  # found in one of two, and never said of another

    def test_risk_goes_with_coverage(self):
        body = list(tables.risk_coverage(self.rows()))[2:]
        self.assertIn("| high and above | 1/2 | 0 %", body[0])
        self.assertIn("| medium and above | 2/2 | 50 %", body[1])


class Records(unittest.TestCase):
    def test_a_case_comes_back_from_its_json(self):
        one = case(gain=(1.4, 1.5))
        again = cases.of_record(json.loads(json.dumps(one.record())), "")
        self.assertEqual(again, one)

    def test_what_a_run_waited_for_a_core_makes_the_realised_gain_an_interval(self):
        self.assertEqual(cases.realised([(9.0, 1.0), (6.0, 2.0)], "validation"), [1.5, 2.0])
        self.assertEqual(cases.realised([(9.0, 1.0), (6.0, 2.0)], "cpu_oversubscribed"), [1.5, 1.5])

    def test_starts_and_ends_beside_what_is_mended_make_it_one_too(self):
        def job(*processes):
            """(begin, first kernel, end of its one second of kernels, end); what lies before the kernels compiles for 2 s."""
            return types.SimpleNamespace(processes=[
                {"begin": begin * SECOND, "end": end * SECOND, "changes": [[begin * SECOND, "loop"], *compiles],
                 "devices": [{"uuid": GPU, "busy": [[first * SECOND, (first + 1) * SECOND]]}]}
                for begin, first, end, compiles in processes])

        compiles = [[1 * SECOND, "compile"], [3 * SECOND, "loop"]]
        before, after = job((0, 4, 6, compiles)), job((0, 1, 3, []))
        walls = [(7.0, 0.0), (3.0, 0.0)]  # beside kernels and compiling 4 s, and 2 s
        alike = cases.as_long_at_its_ends(before, after, walls, "compile_warmup", 0)
        self.assertEqual(alike, 5.0)
        self.assertEqual(cases.realised(walls, "compile_warmup", alike), [1.4, 2.3333])
        two, one = job((0, 4, 6, []), (6, 10, 12, [])), job((0, 1, 3, []))
        self.assertEqual(cases.as_long_at_its_ends(two, one, [(12.0, 0.0), (3.0, 0.0)], "wasted_trials", 0), 6.0)


if __name__ == "__main__":
    unittest.main()
