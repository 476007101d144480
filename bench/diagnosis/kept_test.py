#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The labelled recordings of the repository, explained by the program that was built: what it says of them may be vague, but
not wrong with confidence. Prints the table. What is known to be wrong is listed in known.json; what has been mended
since is said, to be taken off the list."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402
import grades  # noqa: E402
import labelled_report  # noqa: E402
import tables  # noqa: E402
import tiers  # noqa: E402
from labelled import KEPT  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KNOWN = pathlib.Path(__file__).resolve().parent / "known.json"   # name -> what is wrong, by the names of GRAVE
BUILD = pathlib.Path(os.environ.get("HEADROOM_BUILD", ROOT / "build" / "dev"))
GRAVE = ("wrong_single", "false_alarms", "denials", "broken")
OF_A_GAIN = ("over_promise", "beyond", "too_wide")
SPAN_RATIO = 0.01   # by which the time that is explained may differ from the time that the truth is about
# Of the recordings with a fault, by tier and workload, how many first findings are a single cause, the right one, and how
# many are that or a set with it, at least: two below what they were when the floors were set, so that who turns single
# causes into sets, or narrows sets, sees what it costs.
FLOORS = {
    "NPYL": {"plain": (58, 68), "torch": (56, 62)},
    "N": {"plain": (9, 68), "torch": (15, 62)},
}


def wrong_gain(row):
    """What may not be of a gain, by name."""
    return {name for name in OF_A_GAIN if row["gain"] and row["gain"][name]}


def grave(row):
    """What may not be, by name."""
    return {name for name in GRAVE if row[name]} | wrong_gain(row)


class KeptRecordings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = list(cases.read(KEPT))
        cls.headroom = cases.Headroom(BUILD / "src" / "cli" / "headroom")
        cls.graded = labelled_report.Graded(cls.headroom, cls.cases)

    def test_there_are_some_of_every_kind(self):
        labels = [case.label for case in self.cases]
        self.assertGreaterEqual(len({label["cause"] for label in labels} - {"healthy"}), 25)
        self.assertGreaterEqual(sum(label["cause"] == "healthy" for label in labels), 10)
        for name in ("workload", "cores", "severity"):
            self.assertGreaterEqual(len({label[name] for label in labels}), 2, name)

    def test_all_are_explained_and_the_truth_is_about_the_same_time(self):
        self.assertEqual(self.graded.unexplained, [])
        for case in self.cases:
            span = self.headroom.explain(case)["ledger"]
            self.assertLess(abs(span["end_ns"] - span["begin_ns"] - case.truth.span) / case.truth.span, SPAN_RATIO, case.name)

    def test_nothing_is_wrong_with_confidence_but_what_is_known(self):
        known = {name: set(wrong) for name, wrong in json.loads(KNOWN.read_text()).items()}
        rows = {row["name"]: row for row in self.graded.full()}
        self.assertEqual(set(known) - set(rows), set(), "known.json names recordings that are not there")
        found = {name: sorted(grave(row) - known.get(name, set())) for name, row in rows.items()}
        self.assertEqual({name: wrong for name, wrong in found.items() if wrong}, {})
        for name, wrong in known.items():
            if mended := wrong - grave(rows[name]):
                print(f"mended, to be taken off known.json: {name}: {', '.join(sorted(mended))}")

    def test_plans_gain_what_was_measured(self):
        plans = {row["name"]: row for row in self.graded.plans}
        self.assertEqual(len(plans), len(self.cases))
        self.assertGreater(sum(row["gain"] is not None for row in plans.values()), 60)
        found = {name: sorted(wrong_gain(row)) for name, row in plans.items()}
        self.assertEqual({name: wrong for name, wrong in found.items() if wrong}, {})
        well = {name: row["highest"] for name, row in plans.items() if row["label"]["cause"] == "healthy"}
        self.assertEqual({name: high for name, high in well.items() if high > grades.WIDEST}, {}, "nothing is to be mended there")

    def test_no_less_is_right_than_was(self):
        self.assertEqual(tiers.STEPS[-1], "NPYL")
        for tier, floors in FLOORS.items():
            faults = [row for row in self.graded.rows[tier] if row["fault"]]
            for workload, (single, right) in floors.items():
                rows = [row for row in faults if row["label"]["workload"] == workload]
                found = (sum(row["first"] == "exact" for row in rows), sum(tables.right(row) for row in rows))
                self.assertGreaterEqual(found[0], single, f"{tier}, {workload}: single and right, of {len(rows)}")
                self.assertGreaterEqual(found[1], right, f"{tier}, {workload}: right, or a set with it, of {len(rows)}")

    def test_the_table_says_something_of_each(self):
        lines = list(labelled_report.report(self.graded))
        print("\n".join(lines))
        self.assertTrue(any(line.startswith("| top-1") for line in lines))
        self.assertEqual(len(self.graded.full()), len(self.cases))
        self.assertGreater(len(list(tables.by_cause(self.graded.rows))), 25)


if __name__ == "__main__":
    unittest.main()
