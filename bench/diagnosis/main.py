#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How true are the answers? Random virtual jobs that know where their time went, and Headroom's answers to their
recordings: ./dev bench diagnosis

Recordings and truths stay in the output folder, and what is there is not made again; --score-only explains and scores them
anew, as after a changed threshold. docs/performance.md says what is counted. --labelled: every cause of the catalogue instead,
injected in three severities, two workloads and two host shapes, and mended (docs/diagnosis-benchmark.md); --kept: those of
them that are in the repository, without a run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import jobs as random_jobs  # noqa: E402
import labelled  # noqa: E402
import runner  # noqa: E402
import score  # noqa: E402
import sensitivity  # noqa: E402
import summary  # noqa: E402
import truth  # noqa: E402

QUICK_COUNT = len(random_jobs.FAMILIES)  # one of each
COUNT = 3 * QUICK_COUNT


def options():
    parser = argparse.ArgumentParser(prog="dev bench diagnosis", description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build/bench", help="build folder (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help=f"how many (default {COUNT})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_COUNT} jobs, one of each family: about 15 minutes")
    parser.add_argument("--seeds", choices=("tune", "confirm"), default="tune",
                        help="which jobs: those that thresholds may be moved for, or those that confirm it")
    parser.add_argument("--seed", type=int, default=1, help="another draw of these")
    parser.add_argument("--only", action="append", metavar="FAMILY",
                        help="this family of jobs, or this injected cause; may be repeated")
    parser.add_argument("--beside", type=int, default=3, metavar="N",
                        help="jobs that sleep run N at a time (default %(default)s); those that use the CPU run alone")
    parser.add_argument("--output", help="folder of the recordings (default: in the build folder)")
    parser.add_argument("--score-only", action="store_true", help="explain and score what is there, run nothing")
    parser.add_argument("--no-sensitivity", action="store_true", help="leave the thresholds as they are")
    parser.add_argument("--worst", type=int, default=15, help="how many of the worst answers to show")
    parser.add_argument("--json", metavar="FILE", help="write the scores of each job, too")
    parser.add_argument("--labelled", action="store_true",
                        help="faults injected and mended: about two hours on an idle machine, in parts if need be")
    parser.add_argument("--severity", action="append", choices=("below", "at", "above"),
                        help="labelled: this one; may be repeated")
    parser.add_argument("--part", default="1/1", metavar="I/N",
                        help="labelled: the I-th of N parts, each with some of everything")
    parser.add_argument("--keep", metavar="FOLDER", help="labelled: write a selection with its truths there")
    parser.add_argument("--kept", action="store_true", help="score the labelled recordings of the repository, run nothing")
    return parser.parse_args()


class Answers:
    """`headroom why --json` of many recordings."""

    def __init__(self, headroom, folders, work):
        self.headroom, self.folders, self.environment = headroom, folders, runner.environment(work)

    def explain(self, folder, more):
        done = subprocess.run([self.headroom, "why", "--json", *more, str(folder / "run.hrec")], env=self.environment,
                              capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def all(self, more=()):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = pool.map(lambda folder: self.explain(folder, more), self.folders)
        return {folder: answer for folder, answer in zip(self.folders, answers) if answer}


def score_folder(folder, answer):
    job = json.loads((folder / "job.json").read_text())
    row = score.score(truth.of(folder, answer["ledger"]), answer)
    row.update({key: job[key] for key in ("name", "family", "interval", "burners")}, recording=str(folder / "run.hrec"))
    return row


def judge(answers, truths):
    """How right the answers are, in a few words."""
    right, wrong_account = 0, 0.0
    for folder, answer in answers.items():
        first, wanted = score.first_finding(answer), truths[folder].primary() or ("healthy",)
        right += first is not None and bool(set(score.named(first)) & set(wanted))
        wrong_account += score.score_ledger(truths[folder], answer["ledger"])["wrong_account"]
    return f"{right} right first findings, {wrong_account / len(answers):.2f} % in a wrong account"


def say_machine(headroom):
    load = os.getloadavg()
    print(f"program: {headroom}; {os.cpu_count()} cores, load {load[0]:.1f} at the start, "
          f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC")


def report(given, answers, base, rows):
    for folder in answers.folders:
        if folder not in base:
            print(f"  not explained: {folder}")
    unknown = sorted({text for row in rows for text in row["unknown_denials"]})
    print("\n" + "\n".join(summary.table(rows)))
    print("\nBy family, the most misleading first")
    print("\n".join(summary.by_family(rows)))
    if alarms := list(summary.false_alarms(rows)):
        print("\nFalse alarms on healthy jobs")
        print("\n".join(alarms))
    print("\nThe worst answers")
    print("\n".join(summary.worst(rows, given.worst)))
    if unknown:
        print("\nSentences of `told_apart_from` that score.py does not know:\n  " + "\n  ".join(unknown))
    if not given.no_sensitivity:
        truths = {folder: truth.of(folder, answer["ledger"]) for folder, answer in base.items()}
        print()
        for line in sensitivity.report(answers.headroom, answers.environment, base, answers.all,
                                       lambda some: judge(some, truths)):
            print(line, flush=True)


def main():
    given = options()
    if given.labelled or given.kept:
        return labelled.main(given)
    headroom = pathlib.Path(given.build).resolve() / "src" / "cli" / "headroom"
    output = pathlib.Path(given.output or f"{given.build}/diagnosis/{given.seeds}-{given.seed}").resolve()
    say_machine(headroom)
    if not given.score_only:
        count = given.jobs or (QUICK_COUNT if given.quick else COUNT)
        made = [job for job in random_jobs.make(given.seeds, given.seed, count)
                if not given.only or job.family in given.only]
        begin = time.monotonic()
        runner.run_all(made, headroom, output, given.beside)
        print(f"{len(made)} jobs of seeds '{given.seeds}' {given.seed} in {time.monotonic() - begin:.0f} s: {output}")
    folders = sorted(file.parent for file in output.glob("*/result.json")
                     if not given.only or file.parent.name.split("-", 1)[1] in given.only)
    answers = Answers(str(headroom), folders, output / "stage")
    base = answers.all()
    for folder in list(base):
        if doubts := truth.Job(folder).doubts():
            print(f"  left out: {folder}: {'; '.join(doubts)}")
            del base[folder]
            answers.folders.remove(folder)
    rows = [score_folder(folder, answer) for folder, answer in base.items()]
    if not rows:
        print(f"nothing to score in {output}", file=sys.stderr)
        return 1
    report(given, answers, base, rows)
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
