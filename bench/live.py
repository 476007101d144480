# SPDX-License-Identifier: Apache-2.0
"""What looking costs: `headroom top` on a recording that is being written, beside other monitors in the same run."""
import time

import watched
from results import spread

SECONDS = {"quick": 12, "normal": 40, "full": 120}
OLD = {"quick": 5, "normal": 30, "full": 60}  # how long is recorded before anybody looks


def top(bench, table, effort):
    seconds = SECONDS[effort]
    title = (f"top: 8 GPUs, 200 processes recorded at 1 Hz, from {OLD[effort]} s on; a terminal of 200 x 60; CPU in % of one "
             f"core over {seconds} s")
    output = bench.work / "live.hrec"
    with watched.recorded_tree(bench, 8, 200, "1s", output):
        time.sleep(OLD[effort])
        with watched.in_terminal(bench, 8, [bench.headroom, "top", str(output)]) as pid:
            cost = watched.watch_cost(pid, seconds, settle=4)
        table.add(title, "headroom top: CPU", cost.cpu_percent, "%", spread(cost.parts), 0.3)
        table.add(title, "headroom top: resident", cost.rss_kib, "KiB")
        for name, arguments in watched.installed_peers():
            with watched.in_terminal(bench, 8, [name, *arguments], XDG_CONFIG_HOME=str(watched.configured(bench, name))) as pid:
                cost = watched.watch_cost(pid, seconds, settle=4)
            table.add(title, f"beside it: {name}: CPU", cost.cpu_percent, "%", spread(cost.parts),
                      beside="reads no GPU in this version; every process of the machine" if name == "btop"
                      else "virtual GPUs through the stand-in for NVML; it knows no processes on them")
            table.add(title, f"beside it: {name}: resident", cost.rss_kib - cost.driver_kib, "KiB")


AGES = {"quick": [20], "normal": [30, 300, 960], "full": [30, 300, 960, 3600]}  # seconds for which it has watched


def top_alone(bench, table, effort):
    """It finds the job of the tree and records it; one picture per second, of a minute."""
    seconds = SECONDS[effort]
    title = (f"top alone: 8 GPUs, a tree of 200 processes, a terminal of 200 x 60; CPU in % of one core over {seconds} s, "
             "recording included")
    tree = watched.tree_command(bench, 8, 200)
    script = '"$@" & tree=$!; "$TOP" top --pid $tree; kill $tree'
    with watched.in_terminal(bench, 8, ["env", f"TOP={bench.headroom}", "sh", "-c", script, "sh", *tree],
                             verb="top") as pid:
        begin = time.monotonic()
        for age in AGES[effort]:
            cost = watched.watch_cost(pid, seconds, settle=max(0, begin + age - time.monotonic()))
            table.add(title, f"after {age} s: CPU", cost.cpu_percent, "%", spread(cost.parts), 0.3)
            table.add(title, f"after {age} s: resident, without the stand-in", cost.rss_kib - cost.driver_kib, "KiB", "", 12288)
