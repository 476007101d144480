#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the sample logs beside this file: invented readings in the forms of the real tools.

Every run writes the same bytes. The figures are chosen so that tests can hold known sums against them:

small_gpu_4050*.csv   90 readings of an RTX 4050 Laptop in 300 s, 3.33 s apart on average and irregular: utilisation
                      mean 11.4 %, 0 to 20 %; memory peak 167 MiB, mean 2.2 % of 6141 MiB; power mean 26.8 W with one
                      reading of 590.0 W at 21:16:20 and 20.5 W without it, least 1.7 W. Once without and once with the
                      enforced limit of 55 W.
epochs_a100.dmon      three epochs of 300 s training, 60 s validation and 60 s of graph building at 1 Hz, with -o DT:
                      the GPU is busy for (300 + 0.3 * 60) / 420 of the time, so idle for 24.3 %.
two_gpus_103_rows.csv a home-made monitor of two GPUs, every 5 s for 390 s: 158 rows, of which 103 were written.
"""
import datetime
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent


def write(name, lines):
    (HERE / name).write_text("".join(line + "\n" for line in lines), encoding="ascii")


def spread_to_sum(values, total, low, high, fixed=()):
    """Changes integers one by one, in turn, until they add up; those at `fixed` stay."""
    free = [i for i in range(len(values)) if i not in fixed]
    step = 0
    while sum(values) != total:
        i = free[step % len(free)]
        change = 1 if sum(values) < total else -1
        if low <= values[i] + change <= high:
            values[i] += change
        step += 1
    return values


def small_gpu():
    count, outlier = 90, 60
    rng = random.Random(4050)
    # Spacings in ms: irregular, and 90 of them are 300 s; the last before the outlier makes it fall on 21:16:20.
    spacings = spread_to_sum([3333 + rng.randint(-520, 520) for _ in range(count)], 300_000, 2700, 3950)
    util = [rng.randint(4, 19) for _ in range(count)]
    util[0], util[17], util[44] = 0, 20, 0
    spread_to_sum(util, 1026, 1, 19, fixed=(0, 17, 44))  # 11.4 * 90
    memory = [rng.randint(126, 150) for _ in range(count)]
    memory[0], memory[71] = 3, 167
    spread_to_sum(memory, 12159, 100, 160, fixed=(0, 71))  # 135.1 MiB: 2.2 % of 6141
    power = [round(1400 + util[i] * 55 + rng.randint(-150, 150)) for i in range(count)]  # in 0.01 W
    power[0], power[outlier] = 170, 59000
    spread_to_sum(power, 241_200, 900, 3600, fixed=(0, outlier))  # 26.8 W * 90
    first = datetime.datetime(2025, 11, 5, 21, 16, 20, 118000)
    first -= datetime.timedelta(milliseconds=sum(spacings[1 : outlier + 1]))
    for limit in (False, True):
        header = "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], " \
                 "memory.total [MiB], temperature.gpu, power.draw [W]"
        lines = [header + (", enforced.power.limit [W]" if limit else "")]
        at = first
        for i in range(count):
            at += datetime.timedelta(milliseconds=spacings[i] if i else 0)
            stamp = at.strftime("%Y/%m/%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
            line = f"{stamp}, 0, NVIDIA GeForce RTX 4050 Laptop GPU, {util[i]} %, {util[i] // 4} %, " \
                   f"{memory[i]} MiB, 6141 MiB, {44 + util[i] // 5}, {power[i] / 100:.2f} W"
            lines.append(line + (", 55.00 W" if limit else ""))
        write("small_gpu_4050_limit.csv" if limit else "small_gpu_4050.csv", lines)


def epochs():
    rng = random.Random(100)
    begin = datetime.datetime(2025, 10, 16, 14, 0, 0)
    names = "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk" \
            "     fb   bar1   ccpm"
    units = "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %      %      %    MHz    MHz" \
            "     MB     MB     MB"
    lines = []
    validation = spread_to_sum([rng.randint(22, 38) for _ in range(60)], 1800, 20, 40)  # 30 % on average
    for second in range(3 * 420):
        if second % 30 == 0:
            lines += [names, units]
        at = begin + datetime.timedelta(seconds=second + 1)
        phase = second % 420
        if phase < 300:
            sm, mem, power, clock = 100, 5, rng.randint(250, 300), 1410
        elif phase < 360:
            sm, mem, power, clock = validation[phase - 300], rng.randint(1, 2), rng.randint(100, 150), 1410
        else:
            sm, mem, power, clock = 0, 0, rng.randint(70, 100), 1155
        cells = [0, power, 38 + power // 12, 40 + power // 12, sm, mem, 0, 0, 0, 0, 1593, clock, 40960, 5, 0]
        lines.append(at.strftime(" %Y%m%d   %H:%M:%S") + "".join(f"{cell:7d}" for cell in cells))
    write("epochs_a100.dmon", lines)


def two_gpus():
    rng = random.Random(103)
    rows = [(tick, gpu) for tick in range(79) for gpu in (0, 1)]
    ends = {(0, 0), (0, 1), (78, 0), (78, 1)}  # the first and the last round are whole
    lost = set(rng.sample([row for row in rows if row not in ends], len(rows) - 103))
    begin = datetime.datetime(2025, 11, 1, 16, 8, 34)
    lines = ["timestamp,gpu_id,gpu_util_%,mem_util_%,mem_used_mb,mem_total_mb,temp_c"]
    for tick, gpu in rows:
        if (tick, gpu) in lost:
            continue
        at = begin + datetime.timedelta(seconds=5 * tick)
        busy = gpu == 1 and 30 <= tick < 60
        util = rng.randint(15, 40) if busy else rng.randint(0, 2)
        used = 519 if gpu else 18
        lines.append(f"{at.isoformat()},{gpu},{util},{util // 3},{used},49140,{43 + 12 * gpu}")
    write("two_gpus_103_rows.csv", lines)


if __name__ == "__main__":
    small_gpu()
    epochs()
    two_gpus()
