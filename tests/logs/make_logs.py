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
forms/                one minute of two GPUs at 1 Hz in each form that is read: GPU 0 at 85 and 95 % in turn (mean 90 %) and
                      288 W, GPU 1 idle at 21.5 W; 10240 and 4 of 24576 MiB.
two_gpus_103_rows.csv a home-made monitor of two GPUs, every 5 s for 390 s: 158 rows, of which 103 were written.
"""
import datetime
import json
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent


def write(name, lines):
    (HERE / name).parent.mkdir(exist_ok=True)
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


FORMS_BEGIN = datetime.datetime(2025, 11, 5, 12, 0, 0)
FORMS_UUIDS = ["GPU-5f2c9e1a-7b34-4d0e-9c11-a1b2c3d4e5f6", "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"]


def readings(second, gpu):
    return {"util": (85 if second % 2 else 95) if gpu == 0 else 0, "mem_util": 40 if gpu == 0 else 0,
            "power": 288.0 if gpu == 0 else 21.5, "used": 10240 if gpu == 0 else 4, "temp": 66 if gpu == 0 else 31,
            "sm_active": (0.85 if second % 2 else 0.95) if gpu == 0 else 0.0}


def forms():
    rounds = [(second, [readings(second, gpu) for gpu in (0, 1)]) for second in range(60)]
    at = [FORMS_BEGIN + datetime.timedelta(seconds=second) for second in range(60)]
    write("forms/semicolons.csv", ["timestamp;index;utilization.gpu [%];memory.used [MiB];power.draw [W]"] + [
        f"{at[second]:%Y/%m/%d %H:%M:%S},000;{gpu};{r['util']} %;{r['used']} MiB;{r['power']:.2f} W".replace(".", ",")
        for second, gpus in rounds for gpu, r in enumerate(gpus)])
    write("forms/decimal_commas.csv", ["timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]"] + [
        ", ".join([f"{at[second]:%Y/%m/%d %H:%M:%S},000", str(gpu), f"{r['util']} %", f"{r['used']} MiB",
                   f"{r['power']:.2f} W".replace(".", ",")]) for second, gpus in rounds for gpu, r in enumerate(gpus)])
    write("forms/one_column.csv", ["utilization.gpu [%]"] + [f"{gpus[0]['util']} %" for _, gpus in rounds])
    write("forms/gpustat.json", [json.dumps({
        "hostname": "box", "driver_version": "550.54.14", "query_time": at[second].isoformat() + ".250000",
        "gpus": [{"index": gpu, "uuid": FORMS_UUIDS[gpu], "name": "NVIDIA GeForce RTX 3090",
                  "temperature.gpu": r["temp"], "fan.speed": 30, "utilization.gpu": r["util"], "utilization.enc": 0,
                  "utilization.dec": None, "power.draw": round(r["power"]), "enforced.power.limit": 350,
                  "memory.used": r["used"], "memory.total": 24576, "processes": []} for gpu, r in enumerate(gpus)]},
        indent=4) for second, gpus in rounds])
    dcgm = []
    for second, gpus in rounds:
        if second % 20 == 0:
            dcgm += ["#Entity   GPUTL                       POWER                       FBUSD                       SMACT",
                     "ID                                    W                                                       "]
        dcgm += [f"GPU {gpu}     {r['util']:<28}{r['power']:<28.3f}{r['used']:<28}{r['sm_active']:<.3f}"
                 for gpu, r in enumerate(gpus)]
    write("forms/dcgm.txt", dcgm)
    write("forms/pmon.txt", [line for second, gpus in rounds for line in (
        (["#Date       Time        gpu        pid  type    sm   mem   enc   dec   command        ",
          "#YYYYMMDD   HH:MM:SS    Idx          #   C/G     %     %     %     %   name           "]
         if second % 30 == 0 else []) +
        [f" {at[second]:%Y%m%d   %H:%M:%S}      0       4711     C    {gpus[0]['util'] - 10}    30     -     -   python3",
         f" {at[second]:%Y%m%d   %H:%M:%S}      0       4712     C    10    10     -     -   python3 eval.py",
         f" {at[second]:%Y%m%d   %H:%M:%S}      1          -     -     -     -     -     -   -"])])
    unix = int(FORMS_BEGIN.replace(tzinfo=datetime.timezone.utc).timestamp())
    fields = [("DCGM_FI_DEV_GPU_UTIL", "util"), ("DCGM_FI_DEV_POWER_USAGE", "power"), ("DCGM_FI_DEV_FB_USED", "used"),
              ("DCGM_FI_PROF_SM_ACTIVE", "sm_active")]
    write("forms/prometheus.json", [json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": {"__name__": name, "gpu": str(gpu), "UUID": FORMS_UUIDS[gpu], "device": f"nvidia{gpu}",
                    "modelName": "NVIDIA A100-SXM4-40GB", "Hostname": "box", "instance": "box:9400"},
         "values": [[unix + second, str(gpus[gpu][key])] for second, gpus in rounds]}
        for gpu in (0, 1) for name, key in fields]}})])
    xml = []
    for second, gpus in rounds:
        xml += ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', "<nvidia_smi_log>",
                f"\t<timestamp>{at[second].ctime()}</timestamp>", "\t<driver_version>550.54.14</driver_version>",
                "\t<attached_gpus>2</attached_gpus>"]
        for gpu, r in enumerate(gpus):
            xml += [f'\t<gpu id="00000000:0{gpu + 1}:00.0">', "\t\t<product_name>NVIDIA GeForce RTX 3090</product_name>",
                    f"\t\t<uuid>{FORMS_UUIDS[gpu]}</uuid>", "\t\t<fan_speed>30 %</fan_speed>",
                    "\t\t<performance_state>P2</performance_state>", "\t\t<clocks_event_reasons>",
                    "\t\t\t<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>",
                    "\t\t\t<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>",
                    "\t\t</clocks_event_reasons>", "\t\t<fb_memory_usage>", "\t\t\t<total>24576 MiB</total>",
                    f"\t\t\t<used>{r['used']} MiB</used>", "\t\t</fb_memory_usage>", "\t\t<utilization>",
                    f"\t\t\t<gpu_util>{r['util']} %</gpu_util>", f"\t\t\t<memory_util>{r['mem_util']} %</memory_util>",
                    "\t\t\t<encoder_util>N/A</encoder_util>", "\t\t</utilization>", "\t\t<temperature>",
                    f"\t\t\t<gpu_temp>{r['temp']} C</gpu_temp>", "\t\t</temperature>", "\t\t<gpu_power_readings>",
                    f"\t\t\t<power_draw>{r['power']:.2f} W</power_draw>",
                    "\t\t\t<current_power_limit>350.00 W</current_power_limit>", "\t\t</gpu_power_readings>", "\t</gpu>"]
        xml += ["</nvidia_smi_log>", ""]
    write("forms/smi.xml", xml)
    write("forms/headroom.csv",
          ["at_ns,time,source,key,gpu_index,gpu_util_ratio,power_watts,memory_used_bytes,cpu_user_seconds_total"] + [
              line for second, gpus in rounds for line in
              [f"{second}000000000,{at[second].isoformat()}.000000000Z,gpu,{FORMS_UUIDS[gpu]},{gpu},{r['util'] / 100:g},"
               f"{r['power']:g},{r['used'] << 20}," for gpu, r in enumerate(gpus)] +
              [f"{second}000000000,{at[second].isoformat()}.000000000Z,process,4711/5,,,,,{second}.5"]])


if __name__ == "__main__":
    small_gpu()
    epochs()
    two_gpus()
    forms()
