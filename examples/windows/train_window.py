#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one window of one symbol: the work of which a batch has 252 (windows.toml).

    python3 train_window.py --symbol WIPRO --start 2023-01-01 --end 2023-03-31 --output models/WIPRO_2023-01-01

Prices are generated, the same for a symbol on every machine; features, gradient boosting and metrics are real
(scikit-learn: apt install python3-sklearn). Under `headroom sim` it also launches kernels on a virtual GPU, as boosting
on a GPU would; without one it trains on the CPU only. It leaves model.json and metadata.json: equal for equal windows,
whatever ran beside it and wherever it ran, but for the field "run" of the metadata.
"""
import argparse
import datetime
import hashlib
import json
import os
import sys
import time
import zlib

# One thread: several windows run at the same time. Set before numpy is loaded.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier  # noqa: E402
from sklearn.metrics import accuracy_score, roc_auc_score  # noqa: E402

BARS_PER_DAY, HORIZON, MIB = 26, 13, 1 << 20  # bars of 15 minutes; half a day ahead


class VirtualGpu:
    """A GPU of `headroom sim`: memory for the data, and a kernel per tree."""

    def __init__(self, rows, ordinal):
        import headroom_sim
        self.device = headroom_sim.Device(ordinal)
        self.memory = self.device.malloc(512 * MIB + rows * 4096)
        self.name, self.uuid = self.device.name, self.device.uuid

    def tree(self, milliseconds):
        self.device.launch(ms=milliseconds, sm=0.3)
        self.device.sync()

    def close(self):
        self.memory.free()


def open_gpu(rows, ordinal=0):
    try:
        return VirtualGpu(rows, ordinal)
    except (ImportError, OSError):  # not under `headroom sim`
        return None


def prices_of(symbol, first, last):
    """Closing prices of a symbol: a random walk from its name, with a slow cycle that a model can learn."""
    days = (last - first).days + 1
    offset = (first - datetime.date(2020, 1, 1)).days
    rng = numpy.random.Generator(numpy.random.PCG64([zlib.crc32(symbol.encode()), offset % (1 << 31)]))
    bar = numpy.arange(days * BARS_PER_DAY)
    cycle = 0.02 * numpy.sin(2 * numpy.pi * bar / (BARS_PER_DAY * 7))
    walk = numpy.cumsum(rng.normal(0, 0.002, size=bar.size))
    return 100 * numpy.exp(cycle + walk)


def features_of(prices):
    """Returns and means over several spans, and whether the price is higher HORIZON bars later."""
    logs = numpy.log(prices)
    spans = (1, 3, 13, 26, 78, 182)
    first, count = max(spans), logs.size - max(spans) - HORIZON
    at = first + numpy.arange(count)
    sums = numpy.concatenate(([0.0], numpy.cumsum(logs)))
    columns = [logs[at] - logs[at - span] for span in spans]
    columns += [logs[at] - (sums[at + 1] - sums[at + 1 - span]) / span for span in spans[2:]]
    return numpy.column_stack(columns), (logs[at + HORIZON] > logs[at]).astype(int)


def train(features, labels, trees, gpu, kernel_ms):
    split = int(0.8 * len(labels))
    model = GradientBoostingClassifier(n_estimators=1, max_depth=3, learning_rate=0.1, warm_start=True, random_state=0)
    for tree in range(1, trees + 1):
        model.set_params(n_estimators=tree)
        model.fit(features[:split], labels[:split])
        if gpu is not None:
            gpu.tree(kernel_ms)
        if tree % 10 == 0:
            print(f"tree {tree}/{trees} loss={model.train_score_[-1]:.5f}", flush=True)
    chance = model.predict_proba(features[split:])[:, 1]
    truth = labels[split:]
    auc = roc_auc_score(truth, chance) if 0 < truth.sum() < len(truth) else 0.5
    return model, {"accuracy": float(accuracy_score(truth, chance > 0.5)), "auc": float(auc), "rows": int(len(labels))}


def write(path, value):
    """Whole or not at all: a killed task leaves nothing that looks finished."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def tree_of(estimator):
    tree = estimator.tree_
    return {"feature": tree.feature.tolist(), "threshold": tree.threshold.tolist(), "value": tree.value.ravel().tolist(),
            "left": tree.children_left.tolist(), "right": tree.children_right.tolist()}


def train_window(symbol, start, end, output, trees, gpu, kernel_ms, begin):
    """Trains one window and leaves its artefacts in the folder `output`; returns the model and its metrics."""
    features, labels = features_of(prices_of(symbol, start, end))
    print(f"{symbol} {start} to {end}: {len(labels)} rows on {gpu.name if gpu else 'the CPU'}", flush=True)
    print(f"param learning_rate=0.1 trees={trees}", flush=True)
    model, metrics = train(features, labels, trees, gpu, kernel_ms)

    os.makedirs(output, exist_ok=True)
    stages = [tree_of(stage[0]) for stage in model.estimators_]
    write(os.path.join(output, "model.json"), {"learning_rate": 0.1, "trees": stages})
    digest = hashlib.sha256(json.dumps(stages, sort_keys=True).encode()).hexdigest()
    write(os.path.join(output, "metadata.json"), {
        "symbol": symbol, "start": str(start), "end": str(end), "metrics": metrics, "model_sha256": digest,
        "run": {"started": begin, "seconds": round(time.time() - begin, 3), "gpu": gpu.uuid if gpu else None}})
    print(f"auc={metrics['auc']:.4f} accuracy={metrics['accuracy']:.4f}", flush=True)
    return model, metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--symbol", required=True)
    parser.add_argument("--start", type=datetime.date.fromisoformat, required=True)
    parser.add_argument("--end", type=datetime.date.fromisoformat, required=True)
    parser.add_argument("--output", required=True, help="folder for model.json and metadata.json")
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--kernel-ms", type=float, default=10.0, help="GPU time of a tree, on a virtual GPU")
    parser.add_argument("--gpu-device-id", type=int, default=0, help="as CUDA numbers what the mask shows")
    options = parser.parse_args()
    if options.end <= options.start:
        sys.exit(f"train_window.py: the window ends on {options.end}, before it starts")

    begin = time.time()
    gpu = open_gpu(((options.end - options.start).days + 1) * BARS_PER_DAY, options.gpu_device_id)
    train_window(options.symbol, options.start, options.end, options.output, options.trees, gpu, options.kernel_ms,
                 begin)
    if gpu is not None:
        gpu.close()


if __name__ == "__main__":
    main()
