# SPDX-License-Identifier: Apache-2.0
"""Case 004: a small network on scikit-learn's handwritten digits (digits.npz), whose settings stand in config.json.

Data, training, accuracy and the time of the Python code are real; kernels are virtual (run it under `headroom sim`). "slow" says what
keeps the GPU waiting: "optimizer" is Adam as a loop over each weight in Python, which takes as long however large the batch is; "loader" is
one process that prepares sample by sample.
"""
import json
import multiprocessing
import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import headroom_sim  # noqa: E402
import numpy  # noqa: E402

CONFIG = json.load(open("config.json", encoding="utf-8"))
BATCH, EPOCHS, LEARNING_RATE, SLOW = (CONFIG[name] for name in ("batch_size", "epochs", "learning_rate", "slow"))
TRAIN, HIDDEN = 1408, 512  # 11 batches of 128, 44 of 32; the other 389 samples are held out


def batches(images, labels):
    order = numpy.random.Generator(numpy.random.PCG64(1))
    for _ in range(EPOCHS):
        shuffled = order.permutation(TRAIN)
        for first in range(0, TRAIN, BATCH):
            picked = shuffled[first:first + BATCH]
            yield images[picked], labels[picked]


def prepared(pipe, images, labels):
    """Each sample decoded and normalised by itself, in Python."""
    for some, of in batches(images, labels):
        for _ in range(110):
            some = numpy.array([[float(pixel) for pixel in sample] for sample in some], dtype=numpy.float32)
        pipe.send((some, of))


def loaded(images, labels):
    if SLOW != "loader":
        yield from batches(images, labels)
        return
    ours, theirs = multiprocessing.Pipe(duplex=False)
    multiprocessing.Process(target=prepared, args=(theirs, images, labels), daemon=True).start()
    for _ in range(EPOCHS * TRAIN // BATCH):
        yield ours.recv()


def gradients(weights, images, labels):
    first, second = weights
    hidden = numpy.maximum(images @ first, 0)
    scores = hidden @ second
    chance = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    rows = numpy.arange(len(labels))
    loss = -numpy.log(chance[rows, labels] + 1e-9).mean()
    chance[rows, labels] -= 1
    chance /= len(labels)
    return loss, [images.T @ ((chance @ second.T) * (hidden > 0)), hidden.T @ chance]


def adam_in_numpy(weights, gradient, means, squares, step):
    for weight, slope, mean, square in zip(weights, gradient, means, squares):
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope * slope - square)
        weight -= LEARNING_RATE * (mean / (1 - 0.9**step)) / (numpy.sqrt(square / (1 - 0.99**step)) + 1e-8)


def adam_in_python(weights, gradient, means, squares, step):
    """The same, weight by weight."""
    for weight, slope, mean, square in zip(weights, gradient, means, squares):
        w, g, m, s = (array.ravel().tolist() for array in (weight, slope, mean, square))
        for i in range(len(w)):
            m[i] += 0.1 * (g[i] - m[i])
            s[i] += 0.01 * (g[i] * g[i] - s[i])
            w[i] -= LEARNING_RATE * (m[i] / (1 - 0.9**step)) / ((s[i] / (1 - 0.99**step)) ** 0.5 + 1e-8)
        for array, values in ((weight, w), (mean, m), (square, s)):
            array[...] = numpy.reshape(values, array.shape)


def main():
    data = numpy.load("digits.npz")
    images, labels = (data["images"] / 16).astype(numpy.float32), data["labels"]
    order = numpy.random.Generator(numpy.random.PCG64(0)).permutation(len(labels))
    images, labels = images[order], labels[order]
    random = numpy.random.Generator(numpy.random.PCG64(2))
    weights = [random.normal(0, 0.1, (64, HIDDEN)), random.normal(0, 0.1, (HIDDEN, 10))]
    means, squares = ([numpy.zeros_like(weight) for weight in weights] for _ in range(2))
    adam = adam_in_python if SLOW == "optimizer" else adam_in_numpy
    gpu = headroom_sim.Device(0)
    memory = gpu.malloc(40 << 20)
    steps = EPOCHS * TRAIN // BATCH
    for step, (some, of) in enumerate(loaded(images[:TRAIN], labels[:TRAIN]), 1):
        gpu.launch(ms=3.2 + 0.04 * BATCH, sm=0.4)
        gpu.sync()
        loss, gradient = gradients(weights, some, of)
        adam(weights, gradient, means, squares, step)
        print(f"step {step}/{steps} | loss {loss:.4f}", flush=True)
    scores = numpy.maximum(images[TRAIN:] @ weights[0], 0) @ weights[1]
    print(f"accuracy={(scores.argmax(axis=1) == labels[TRAIN:]).mean():.4f}", flush=True)
    memory.free()


if __name__ == "__main__":
    main()
