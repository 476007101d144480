# SPDX-License-Identifier: Apache-2.0
"""What reading a job's output costs: the pump against a plain pipe and a plain terminal, turn by turn."""
import os
import subprocess
import sys
import time

from results import median, spread

BLOCKS = "import os, sys\nblock = (b'a line of a job that prints much, ' * 3 + b'\\n') * 640\n" \
         "for _ in range(int(sys.argv[1])):\n  view = memoryview(block)\n  while view: view = view[os.write(1, view):]"
BLOCK = (len("a line of a job that prints much, ") * 3 + 1) * 640
BAR = "import sys, time\nbegin = time.process_time()\nfor i in range(2000):\n" \
      "  sys.stdout.write(f'\\rEpoch 0:  45%|####5     | {i}/2000 [00:12<00:15,  9.60it/s, loss=0.{i}]'); sys.stdout.flush()\n" \
      "  time.sleep(0.001)\nsys.stderr.write(str(time.process_time() - begin))"


def read_all(fd):
    """Bytes until the other side is closed."""
    total = 0
    while True:
        try:
            block = os.read(fd, 1 << 20)
        except OSError:  # of a terminal
            block = b""
        if not block:
            os.close(fd)
            return total
        total += len(block)


def rate(bench, command, ends):
    """MB/s of a command's output through a pipe or a terminal."""
    reader, writer = ends()
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          env=bench.environment()):
        os.close(writer)
        total = read_all(reader)
        seconds = time.monotonic() - begin
    return total / 1e6 / seconds


def under_pump(bench, output, *job):
    output.unlink(missing_ok=True)
    return [bench.headroom, "run", "--no-gpu", "--stacks", "0", "-q", "--output-lines", "-o", str(output), "--", *job]


def output_lines(bench, table, effort):
    rounds, blocks = {"quick": (3, 1500), "normal": (7, 3000), "full": (15, 6000)}[effort]
    size = blocks * BLOCK / 1e6
    title = f"output: {size:.0f} MB of a job's lines through --output-lines and without, {rounds} alternating runs"
    output = bench.work / "output.hrec"
    for name, ends in (("pipe", os.pipe), ("terminal", os.openpty)):
        job = [sys.executable, "-c", BLOCKS, str(blocks)]
        plain, pumped = [], []
        for _ in range(rounds):
            plain.append(rate(bench, job, ends))
            pumped.append(rate(bench, under_pump(bench, output, *job), ends))
        # A terminal's own speed is the kernel's, 4 KiB at a time, and it is passed twice.
        table.add(title, f"{name}: with it", median(pumped), "MB/s", spread(pumped), 100 if name == "pipe" else None, "more",
                  beside=f"start and end of the recording counted; without it {median(plain):.0f} MB/s")
    bars = [sys.executable, "-c", BAR]
    alone = [float(cpu_of(bench, bars)) for _ in range(rounds)]
    read = [float(cpu_of(bench, under_pump(bench, output, *bars))) for _ in range(rounds)]
    table.add(title, "a bar redrawn 2,000 times, CPU of the job per redraw: more", 1e6 * (median(read) - median(alone)) / 2000, "us", "",
              beside=f"without it {1e6 * median(alone) / 2000:.1f} us")


def cpu_of(bench, command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env=bench.environment(), text=True, check=True).stderr
