# SPDX-License-Identifier: Apache-2.0
"""Cases 000 and 002: the model of one window of one symbol, boosted stumps on made-up prices.

Start, boosting and the file it leaves are real; kernels are virtual (run it under `headroom sim`), and reading the prices is a wait of
--fetch-ms. The time of a model is that of the case, its number of trees a fiftieth.
"""
import argparse
import json
import os
import random
import time
import zlib

import headroom_sim


def prices(symbol, window):
    """Feature rows, and whether the price rose: a walk from the names."""
    rng = random.Random(zlib.crc32(f"{symbol} {window}".encode()))
    rows = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(rng.randint(240, 420))]
    return rows, [int(row[0] + 0.5 * row[1] + rng.gauss(0, 1) > 0) for row in rows]


def stump(rows, slopes):
    """The split that halves the squared error most: (gain, feature, at, left, right)."""
    best = None
    for feature in range(3):
        for at in (-1.0, -0.5, 0.0, 0.5, 1.0):
            left = [slope for row, slope in zip(rows, slopes) if row[feature] <= at]
            total, count = sum(left), len(left)
            rest, others = sum(slopes) - total, len(rows) - count
            if count and others:
                found = (total * total / count + rest * rest / others, feature, at, total / count, rest / others)
                best = max(best or found, found)
    return best


def main():
    parser = argparse.ArgumentParser()
    for name in ("--symbol", "--window", "--output"):
        parser.add_argument(name, required=True)
    for name, default in (("--num-leaves", 127), ("--n-estimators", 500), ("--fetch-ms", 450), ("--kernel-ms", 8)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    begin = time.time()
    print(f"param num_leaves={options.num_leaves} n_estimators={options.n_estimators}", flush=True)
    gpu = headroom_sim.Device(0)
    memory = gpu.malloc(512 << 20)
    time.sleep(options.fetch_ms / 1000)
    rows, labels = prices(options.symbol, options.window)
    if options.num_leaves > len(rows):
        raise ValueError(f"num_leaves={options.num_leaves} is more than the {len(rows)} rows of the window")
    scores, trees, rounds = [0.0] * len(rows), [], options.n_estimators // 50
    for number in range(1, rounds + 1):
        gpu.launch(ms=options.kernel_ms + options.num_leaves / 64, sm=0.3)
        gpu.sync()
        tree = stump(rows, [label - 0.5 - score for label, score in zip(labels, scores)])
        trees.append(tree[1:])
        for index, row in enumerate(rows):
            scores[index] += 0.3 * (tree[3] if row[tree[1]] <= tree[2] else tree[4])
    hits = sum((score > 0) == bool(label) for score, label in zip(scores, labels)) / len(rows)
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "model.json"), "w", encoding="utf-8") as file:
        json.dump({"trees": trees, "hits": hits, "trained_at": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begin))}, file)
    print(f"accuracy={hits:.4f}", flush=True)
    memory.free()


if __name__ == "__main__":
    main()
