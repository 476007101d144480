# SPDX-License-Identifier: Apache-2.0
"""`headroom import` of logs of nvidia-smi, beside Python's csv reading the same file, and of what is no log."""
import subprocess

from results import median, spread
from traces import measure

HOURS = {"quick": 3, "normal": 24, "full": 24}
ROUNDS = {"quick": 3, "normal": 5, "full": 9}
READ_BY_PYTHON = "import csv, sys; print(sum(len(row) for row in csv.reader(open(sys.argv[1], newline=''))))"
STREAMED_MB = {"quick": 100, "normal": 1000, "full": 1000}
STREAM_TARGET_MIB = 300
MB_OF_AN_HOUR = 1.547    # of 5 columns
REFUSED_MIB = 16


def logs(bench, table, effort):
    for columns in (22, 5):
        read(bench, table, effort, columns)
    stream(bench, table, effort)
    refuse(bench, table)


def made_by(bench, path, hours, columns):
    return [bench.tool("bench_store"), "csv", str(path), str(hours), str(columns)]


def read(bench, table, effort, columns):
    log, output = bench.work / "log.csv", bench.work / "log.hrec"
    subprocess.run(made_by(bench, log, HOURS[effort], columns), check=True)
    lines = HOURS[effort] * 3600 * 8
    title = f"import: SYNTHETIC log of nvidia-smi, {lines} lines x {columns} columns, {log.stat().st_size / 1e6:.0f} MB"
    ours, theirs, resident = [], [], 0
    for _ in range(ROUNDS[effort]):
        seconds, mib, _ = measure(bench, [bench.headroom, "import", str(log), "-o", str(output)])
        output.unlink()
        ours.append(seconds)
        resident = max(resident, mib)
        theirs.append(measure(bench, ["/usr/bin/python3", "-c", READ_BY_PYTHON, str(log)])[0])
    log.unlink()
    ratios = [mine / others for mine, others in zip(ours, theirs)]
    table.add(title, "headroom import", median(ours), "s", spread(ours), beside=f"{resident:.0f} MiB resident")
    table.add(title, "Python's csv module", median(theirs), "s", spread(theirs))
    table.add(title, "headroom import, by Python's csv module", median(ratios), "times", spread(ratios), 1)


def stream(bench, table, effort):
    """Through a pipe, so that nothing of it lies in a file."""
    output = bench.work / "stream.hrec"
    megabytes = STREAMED_MB[effort]
    with subprocess.Popen(made_by(bench, "/dev/stdout", megabytes / MB_OF_AN_HOUR, 5), stdout=subprocess.PIPE) as maker:
        seconds, mib, _ = measure(bench, [bench.headroom, "import", "-", "-o", str(output)], stdin=maker.stdout)
    title = f"import: SYNTHETIC log of nvidia-smi, 5 columns, {megabytes} MB from a pipe"
    table.add(title, "headroom import: resident", mib, "MiB", "", STREAM_TARGET_MIB if megabytes >= 1000 else None,
              beside=f"{seconds:.1f} s, with the writer of the pipe")
    output.unlink()


def refuse(bench, table):
    """JSON of another tool, in one line: what it takes to say so."""
    path = bench.work / "other.json"
    one = '{"size":64,"kind":2,"operation":3,"thread_id":1411,"correlation_id":{"internal":7,"external":0},"start_timestamp":1,"end_timestamp":2}'
    title = f"import: SYNTHETIC JSON of a profiler that is not read, {REFUSED_MIB} MiB in one line"
    _, least, _ = measure(bench, ["/bin/true"])  # what a process has of this one's before it is another program
    for what, begin in (("refused: resident", ""), ("refused behind an empty line: resident", "\n")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(begin + '{"rocprofiler-sdk-tool":[{"buffer_records":{"kernel_dispatch":[' + one)
            while file.tell() < REFUSED_MIB << 20:
                file.write(("," + one) * 1000)
            file.write("]}}]}\n")
        seconds, mib, _ = measure(bench, [bench.headroom, "import", str(path)], code=2, stderr=subprocess.DEVNULL)
        table.add(title, what, mib, "MiB", "", REFUSED_MIB + least, beside=f"`true`: {least:.0f} MiB; {seconds:.3f} s")
    path.unlink()
