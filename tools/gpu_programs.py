#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twelve PyTorch training programs, each with a fault that people make and mended, for a real GPU.

gpu_programs.py HEADROOM [--only NAME,…] [--seconds 8] --output FOLDER records each twice, with equal samples: before for
so many seconds, after for the steps that before reached. pairs.json says what is so; what `plan` said lies beside it.
Without CUDA the sizes are tiny: a dry run of the programs.
"""
import argparse
import contextlib
import json
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

try:
    import numpy
except ImportError:  # then one of the programs fails, and is told and passed over
    numpy = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
LIMIT = 60  # seconds for one run of a program
PROGRAMS = {}


def pick(large, small):
    """The size on a GPU, and in a dry run."""
    return large if CUDA else small


def program(truth, cause, cost):
    """Registers a program: its fault in one sentence, the cause in plain words, the share of the loop it may cost."""
    def register(function):
        PROGRAMS[function.__name__] = (function, truth, cause, cost)
        return function
    return register


def wait_for_gpu():
    if CUDA:
        torch.cuda.synchronize()


class Clock:
    """What the main thread does, in seconds by label. Labels are not nested."""

    def __init__(self):
        self.seconds = {}

    @contextlib.contextmanager
    def __call__(self, label):
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[label] = self.seconds.get(label, 0.0) + time.monotonic() - begin

    def over(self, label, loader):
        """Iterates, with the time in the iterator (its start and end too) under the label."""
        with self(label):
            iterator = iter(loader)
        try:
            while True:
                with self(label):
                    batch = next(iterator, None)
                if batch is None:
                    return
                yield batch
        finally:
            with self(label):
                del iterator


class Loop:
    """Goes on for some seconds, or for so many steps; begins when first asked."""

    def __init__(self, clock, seconds, steps):
        self.clock, self.limit, self.steps = clock, seconds, steps
        self.done, self.begin, self.seconds = 0, None, 0.0

    def more(self):
        if self.begin is None:
            wait_for_gpu()
            self.clock.seconds.clear()
            self.begin = time.monotonic()
        passed = time.monotonic() - self.begin
        return passed < 0.75 * LIMIT and (self.done < self.steps if self.steps else passed < self.limit)

    def end(self):
        with self.clock("wait at end"):
            wait_for_gpu()
        self.seconds = time.monotonic() - self.begin


# Models

def attention(queries, keys, values, causal):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=causal)
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    if causal:
        scores = scores + torch.full(scores.shape[-2:], float("-inf"), device=scores.device).triu(1)
    return scores.softmax(-1) @ values


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2)
                   for one in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.out(attention(q, k, v, self.causal).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Next-token model; with `classes`, a classifier of whole texts."""

    def __init__(self, vocabulary, width, depth, longest, classes=None):
        super().__init__()
        self.classes = classes
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*(Block(width, max(1, width // 64), classes is None) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes or vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        x = self.norm(self.blocks(x))
        return self.head(x.mean(1) if self.classes else x)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, x):
        return x + self.body(x)


def convnet(width, depth, classes):
    """Residual blocks after a patch of 8×8 pixels."""
    return nn.Sequential(nn.Conv2d(3, width, 8, stride=8), *(Residual(width) for _ in range(depth)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)
                         ).to(DEVICE, memory_format=torch.channels_last)


def mixed():
    return torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA)


def language_loss(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


def train_step(model, optimizer, compute_loss, *batch):
    optimizer.zero_grad()
    with mixed():
        loss = compute_loss(model, *batch)
    loss.backward()
    optimizer.step()
    return loss


def classify_loss(model, inputs, labels):
    return F.cross_entropy(model(inputs), labels)


def warm(step, times=3):
    for _ in range(times):
        step()
    wait_for_gpu()


# 1. Workers that start again with each short epoch

class PictureDataset(Dataset):
    """Small pictures in memory, cropped and flipped at each look."""

    def __init__(self, count, side, classes=100):
        self.pictures = torch.randint(256, (count, 3, side + 16, side + 16), dtype=torch.uint8)
        self.labels = torch.randint(classes, (count,))
        self.side = side

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        top, left = random.randrange(16), random.randrange(16)
        picture = self.pictures[index, :, top:top + self.side, left:left + self.side]
        if random.random() < 0.5:
            picture = picture.flip(-1)
        return picture.contiguous(), self.labels[index]


def byte_loss(model, pictures, labels):
    pictures = pictures.to(memory_format=torch.channels_last).float().div_(255)
    return F.cross_entropy(model(pictures), labels)


def train_one_epoch(model, optimizer, loader, clock, loop):
    for pictures, labels in clock.over("data", loader):
        with clock("step"):
            loss = train_step(model, optimizer, byte_loss, pictures.to(DEVICE, non_blocking=True),
                              labels.to(DEVICE, non_blocking=True))
        loop.done += 1
        if loop.done % 10 == 0:
            with clock("log"):
                loss.item()
        if not loop.more():
            return


@program("Each epoch has 16 batches only, and the DataLoader starts its 8 workers anew for each.",
         "DataLoader workers restarted each epoch (persistent_workers=False)", "25-60 %")
def short_epochs(changed, clock, loop):
    batch = pick(64, 4)
    dataset = PictureDataset(16 * batch, pick(192, 32))
    loader = DataLoader(dataset, batch_size=batch, shuffle=True, num_workers=pick(8, 2), pin_memory=CUDA,
                        drop_last=True, persistent_workers=changed)
    model = convnet(pick(256, 8), pick(24, 2), 100)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    some = torch.zeros(batch, 3, dataset.side, dataset.side, dtype=torch.uint8, device=DEVICE)
    warm(lambda: train_step(model, optimizer, byte_loss, some, torch.zeros(batch, dtype=torch.long, device=DEVICE)))
    while loop.more():
        train_one_epoch(model, optimizer, loader, clock, loop)


# 2. A thread that tokenises beside the training loop

SYLLABLES = [a + b + c for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("", "n", "r", "s")]
PIECES = {piece: number + 2 for number, piece in enumerate(SYLLABLES + list("abcdefghijklmnopqrstuvwxyz"))}


class ReviewDataset(Dataset):
    """Texts of a hundred words or so."""

    def __init__(self, count, words):
        chance = random.Random(0)
        self.texts = [" ".join("".join(chance.choices(SYLLABLES, k=chance.randint(1, 4)))
                               for _ in range(chance.randint(words // 2, words))) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], index % 5


def tokenize(text):
    """Longest pieces first, as a word-piece tokeniser does it."""
    tokens = []
    for word in text.lower().split():
        start = 0
        while start < len(word):
            for end in range(min(len(word), start + 4), start, -1):
                piece = PIECES.get(word[start:end])
                if piece is not None:
                    tokens.append(piece)
                    break
            else:
                tokens.append(1)
            start = end
    return tokens


class Collate:
    def __init__(self, length):
        self.length = length

    def __call__(self, samples):
        rows = [tokenize(text)[:self.length] for text, _ in samples]
        rows = [row + [0] * (self.length - len(row)) for row in rows]
        return torch.tensor(rows), torch.tensor([label for _, label in samples])


class BatchProducer(threading.Thread):
    """Makes batches ahead of the training loop."""

    def __init__(self, dataset, batch_size, collate_fn):
        super().__init__(daemon=True)
        self.dataset, self.batch_size, self.collate_fn = dataset, batch_size, collate_fn
        self.batches, self.ended = queue.Queue(maxsize=8), False

    def run(self):
        while not self.ended:
            samples = [self.dataset[random.randrange(len(self.dataset))] for _ in range(self.batch_size)]
            self.batches.put(self.collate_fn(samples))

    def __iter__(self):
        while True:
            yield self.batches.get()

    def stop(self):
        self.ended = True
        with contextlib.suppress(queue.Empty):
            while True:
                self.batches.get_nowait()
        self.join(5)


@program("A background thread tokenises each batch in Python and holds the interpreter lock while the loop launches.",
         "input made by a thread of the same process: too slow, and the main thread waits for the interpreter lock",
         "50-75 %")
def producer_thread(changed, clock, loop):
    batch, length = pick(96, 4), pick(128, 16)
    dataset, collate_fn = ReviewDataset(pick(8192, 64), pick(200, 20)), Collate(length)
    model = Transformer(512, pick(512, 32), pick(12, 2), length, classes=5).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    some = torch.randint(300, (batch, length), device=DEVICE), torch.zeros(batch, dtype=torch.long, device=DEVICE)
    warm(lambda: train_step(model, optimizer, classify_loss, *some))
    producer = None
    if changed:
        sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=1 << 24)
        source = DataLoader(dataset, batch_size=batch, sampler=sampler, collate_fn=collate_fn, num_workers=pick(8, 1),
                            pin_memory=CUDA)
    else:
        source = producer = BatchProducer(dataset, batch, collate_fn)
        producer.start()
    loop.more()
    for tokens, labels in clock.over("data", source):
        with clock("step"):
            loss = train_step(model, optimizer, classify_loss, tokens.to(DEVICE, non_blocking=True),
                              labels.to(DEVICE, non_blocking=True))
        loop.done += 1
        if loop.done % 20 == 0:
            with clock("log"):
                loss.item()
        if not loop.more():
            break
    if producer:
        producer.stop()


# 3. Two faults: validation one by one, and checkpoints that the loop waits for

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for (tokens,) in loader:
        with mixed():
            total += language_loss(model, tokens.to(DEVICE)).item() * len(tokens)
        count += len(tokens)
    model.train()
    return total / count


def save_checkpoint(model, optimizer, path):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


class Checkpointer:
    """Copies into pinned memory, and lets a thread write it."""

    def __init__(self):
        self.held, self.thread = {}, None

    def copy(self, value, key=()):
        if isinstance(value, dict):
            return {name: self.copy(one, (*key, name)) for name, one in value.items()}
        if not isinstance(value, torch.Tensor):
            return value
        if key not in self.held:
            self.held[key] = torch.empty(value.shape, dtype=value.dtype, pin_memory=CUDA)
        return self.held[key].copy_(value, non_blocking=True)

    def save(self, model, optimizer, path):
        self.wait()
        state = self.copy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        wait_for_gpu()
        self.thread = threading.Thread(target=torch.save, args=(state, path))
        self.thread.start()

    def wait(self):
        if self.thread:
            self.thread.join()


@program("Every 60 steps the loop validates 192 texts one at a time, then writes half a gigabyte of checkpoint itself.",
         "two: validation with batch size 1; checkpoint written by the main thread", "40-65 %")
def evaluate_and_save(changed, clock, loop):
    vocabulary, length, batch = pick(16384, 100), pick(256, 16), pick(64, 2)
    model = Transformer(vocabulary, pick(512, 32), pick(8, 2), length).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(vocabulary, (16 * batch, length), device=DEVICE)
    validation = DataLoader(TensorDataset(torch.randint(vocabulary, (pick(192, 8), length))),
                            batch_size=pick(32, 4) if changed else 1)
    every, checkpointer, best = pick(60, 5), Checkpointer(), float("inf")
    warm(lambda: train_step(model, optimizer, language_loss, tokens[:batch]))
    evaluate(model, validation)
    if changed:
        checkpointer.copy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    while loop.more():
        with clock("step"):
            at = loop.done % 16 * batch
            train_step(model, optimizer, language_loss, tokens[at:at + batch])
        loop.done += 1
        if loop.done % every == 0:
            with clock("wait before eval"):
                wait_for_gpu()
            with clock("eval"):
                best = min(best, evaluate(model, validation))
            with clock("save"):
                path = f"checkpoint{loop.done // every % 2}.pt"
                (checkpointer.save if changed else save_checkpoint)(model, optimizer, path)
    with clock("save"):
        checkpointer.wait()


# 4. Two faults: gradients read one by one, and histograms of all parameters made on the CPU

def clip_gradients(parameters, limit):
    total = 0.0
    for parameter in parameters:
        total += parameter.grad.norm(2).item() ** 2
    total = total ** 0.5
    if total > limit:
        for parameter in parameters:
            parameter.grad.mul_(limit / total)
    return total


def log_histograms(model, file, step):
    for name, parameter in model.named_parameters():
        values = parameter.detach().cpu().numpy()
        counts, _ = numpy.histogram(values, bins=64, range=(-1.0, 1.0))
        file.write(json.dumps({"step": step, "name": name, "counts": counts.tolist()}) + "\n")
    file.flush()


def log_histograms_of_gpu(model, file, step):
    names, counts = [], []
    for name, parameter in model.named_parameters():
        names.append(name)
        counts.append(torch.histc(parameter.detach(), bins=64, min=-1.0, max=1.0))
    for name, row in zip(names, torch.stack(counts).tolist()):
        file.write(json.dumps({"step": step, "name": name, "counts": row}) + "\n")
    file.flush()


@program("Clipping reads the norm of each of 300 gradients with .item() at each step, and every 40 steps all parameters "
         "are copied to the host for numpy histograms.",
         "two: hundreds of synchronising reads each step; logging of histograms on the CPU", "45-70 %")
def clip_and_histograms(changed, clock, loop):
    vocabulary, length, batch = pick(8192, 100), pick(256, 16), pick(64, 2)
    model = Transformer(vocabulary, pick(384, 32), pick(24, 2), length).to(DEVICE)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    tokens = torch.randint(vocabulary, (batch, length), device=DEVICE)
    warm(lambda: train_step(model, optimizer, language_loss, tokens))
    every = pick(40, 5)
    with open("histograms.jsonl", "w") as file:
        while loop.more():
            with clock("step"):
                optimizer.zero_grad()
                with mixed():
                    loss = language_loss(model, tokens)
                loss.backward()
            with clock("clip"):
                if changed:
                    nn.utils.clip_grad_norm_(parameters, 1.0)
                else:
                    clip_gradients(parameters, 1.0)
            with clock("step"):
                optimizer.step()
            loop.done += 1
            if loop.done % every == 0:
                with clock("wait before log"):
                    wait_for_gpu()
                with clock("log"):
                    (log_histograms_of_gpu if changed else log_histograms)(model, file, loop.done)


# 5. A loss that goes over the samples in Python

class Detector(nn.Module):
    def __init__(self, width, depth, boxes, classes):
        super().__init__()
        self.boxes, self.classes = boxes, classes
        self.body = convnet(width, depth, boxes * (4 + classes))

    def forward(self, pictures):
        out = self.body(pictures).view(len(pictures), self.boxes, 4 + self.classes)
        return out[..., :4], out[..., 4:]


def detection_loss(boxes, logits, true_boxes, true_labels, counts):
    losses = []
    for i, count in enumerate(counts):
        box_loss = F.smooth_l1_loss(boxes[i, :count], true_boxes[i, :count])
        label_loss = F.cross_entropy(logits[i, :count], true_labels[i, :count])
        losses.append(box_loss + label_loss)
    return torch.stack(losses).mean()


def detection_loss_of_batch(boxes, logits, true_boxes, true_labels, counts):
    numbers = torch.tensor(counts)
    if CUDA:
        numbers = numbers.pin_memory()
    numbers = numbers.to(DEVICE, non_blocking=True)
    mask = (torch.arange(boxes.shape[1], device=DEVICE) < numbers[:, None]) / numbers[:, None]
    box_loss = F.smooth_l1_loss(boxes, true_boxes, reduction="none").mean(-1)
    label_loss = F.cross_entropy(logits.flatten(0, 1), true_labels.flatten(), reduction="none").view_as(box_loss)
    return ((box_loss + label_loss) * mask).sum(1).mean()


@program("The loss is summed in a Python loop over the 96 samples, which launches thousands of tiny kernels a step.",
         "per-sample Python loop in the loss: bound by kernel launches", "45-75 %")
def per_sample_loss(changed, clock, loop):
    batch, side, boxes, classes = pick(96, 4), pick(224, 32), 32, 20
    model = Detector(pick(256, 8), pick(10, 2), boxes, classes).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    pictures = torch.rand(batch, 3, side, side, device=DEVICE).to(memory_format=torch.channels_last)
    true_boxes = torch.rand(batch, boxes, 4, device=DEVICE)
    true_labels = torch.randint(classes, (batch, boxes), device=DEVICE)
    chance = random.Random(0)
    compute_loss = detection_loss_of_batch if changed else detection_loss

    def step():
        counts = [chance.randint(1, boxes) for _ in range(batch)]
        optimizer.zero_grad()
        with clock("forward"), mixed():
            predicted, logits = model(pictures)
        with clock("loss"), mixed():
            loss = compute_loss(predicted.float(), logits, true_boxes, true_labels, counts)
        with clock("backward"):
            loss.backward()
            optimizer.step()
        return loss

    warm(step)
    while loop.more():
        loss = step()
        loop.done += 1
        if loop.done % 20 == 0:
            with clock("log"):
                loss.item()


# 6. Optimizer state that lives on the CPU and travels at each step

class OffloadedAdamW:
    """AdamW with its moments on the host, to save GPU memory; `offload=False` keeps them where they are used."""

    def __init__(self, parameters, lr, offload, betas=(0.9, 0.99), decay=0.01):
        self.parameters, self.lr, self.betas, self.decay, self.steps = list(parameters), lr, betas, decay, 0
        self.home = torch.device("cpu") if offload else DEVICE
        self.moments = [(torch.zeros_like(one, device=self.home), torch.zeros_like(one, device=self.home))
                        for one in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        self.steps += 1
        first, second = self.betas
        for parameter, kept in zip(self.parameters, self.moments):
            mean, square = (one.to(DEVICE) for one in kept)
            mean.lerp_(parameter.grad, 1 - first)
            square.mul_(second).addcmul_(parameter.grad, parameter.grad, value=1 - second)
            divisor = (square / (1 - second ** self.steps)).sqrt_().add_(1e-8)
            parameter.mul_(1 - self.lr * self.decay)
            parameter.addcdiv_(mean, divisor, value=-self.lr / (1 - first ** self.steps))
            if self.home != DEVICE:
                kept[0].copy_(mean)
                kept[1].copy_(square)


@program("The optimizer keeps its moments in ordinary host memory and copies half a gigabyte to the GPU and back at each "
         "step.", "optimizer state offloaded to the CPU though the GPU has room: large pageable copies", "40-75 %")
def optimizer_offload(changed, clock, loop):
    vocabulary, length, batch = pick(8192, 100), pick(1024, 16), pick(96, 2)
    model = Transformer(vocabulary, pick(1024, 32), pick(4, 2), length).to(DEVICE)
    optimizer = OffloadedAdamW(model.parameters(), 1e-4, offload=not changed)
    tokens = torch.randint(vocabulary, (batch, length), device=DEVICE)
    warm(lambda: train_step(model, optimizer, language_loss, tokens))
    while loop.more():
        with clock("forward and backward"):
            optimizer.zero_grad()
            with mixed():
                loss = language_loss(model, tokens)
            loss.backward()
        with clock("wait before optimizer"):
            if not changed:
                wait_for_gpu()
        with clock("optimizer"):
            optimizer.step()
        loop.done += 1
        if loop.done % 20 == 0:
            with clock("log"):
                loss.item()


# 7. Texts generated one prompt at a time, each token read back

@torch.no_grad()
def generate(model, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        with mixed():
            logits = model(torch.tensor([tokens], device=DEVICE))[0, -1]
        tokens.append(torch.multinomial(logits.float().softmax(-1), 1).item())
    return tokens


@torch.no_grad()
def generate_batch(model, prompts, count):
    tokens = torch.tensor(prompts, device=DEVICE)
    for _ in range(count):
        with mixed():
            logits = model(tokens)[:, -1]
        tokens = torch.cat([tokens, torch.multinomial(logits.float().softmax(-1), 1)], dim=1)
    return tokens


def policy_loss(model, tokens, rewards):
    logits = model(tokens[:, :-1])
    losses = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1), reduction="none")
    return (losses.view(len(tokens), -1).mean(1) * rewards).mean()


@program("Before each update the model generates 8 answers of 16 tokens one prompt at a time, and reads each token back "
         "with .item().", "batch-1 generation in the training loop: tiny kernels, and a synchronising read for each token",
         "45-75 %")
def rollout_generation(changed, clock, loop):
    vocabulary, start, new, prompts_each, batch = pick(8192, 50), pick(240, 12), pick(16, 4), pick(8, 2), pick(128, 4)
    model = Transformer(vocabulary, pick(512, 32), pick(8, 2), start + new).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    prompts = torch.randint(vocabulary, (prompts_each, start)).tolist()
    replay = torch.randint(vocabulary, (batch, start + new), device=DEVICE)
    rewards = torch.rand(batch, device=DEVICE)
    warm(lambda: train_step(model, optimizer, policy_loss, replay, rewards))
    generate(model, prompts[0], 2)
    generate_batch(model, prompts, 2)
    while loop.more():
        with clock("wait before generate"):
            wait_for_gpu()
        with clock("generate"):
            if changed:
                answers = generate_batch(model, prompts, new)
            else:
                answers = torch.tensor([generate(model, prompt, new) for prompt in prompts], device=DEVICE)
            replay = torch.cat([replay[len(answers):], answers])
        with clock("step"):
            for _ in range(4):
                loss = train_step(model, optimizer, policy_loss, replay, rewards)
        loop.done += 1
        with clock("log"):
            loss.item()


# 8. The allocator's memory given back after each step

@program("torch.cuda.empty_cache() after each step, with texts of changing length: all activations are allocated anew from "
         "the driver.", "cudaFree and cudaMalloc at each step", "30-70 %")
def empty_cache(changed, clock, loop):
    vocabulary, longest, batch = pick(8192, 100), pick(1024, 16), pick(48, 2)
    model = Transformer(vocabulary, pick(2048, 32), pick(4, 2), longest).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    chance = random.Random(0)
    tokens = torch.randint(vocabulary, (batch, longest), device=DEVICE)
    warm(lambda: train_step(model, optimizer, language_loss, tokens))
    while loop.more():
        length = chance.randrange(longest // 4, longest, pick(32, 4))
        with clock("step"):
            loss = train_step(model, optimizer, language_loss, tokens[:, :length])
        loop.done += 1
        if loop.done % 10 == 0:
            with clock("log"):
                loss.item()
        if not changed:
            del loss
            with clock("empty_cache"):
                torch.cuda.empty_cache()


# 9. Two ranks, the first of which scores texts in Python while the other waits

def ngrams(tokens, size):
    counts = {}
    for at in range(len(tokens) - size + 1):
        key = tuple(tokens[at:at + size])
        counts[key] = counts.get(key, 0) + 1
    return counts


def compute_bleu(predictions, references):
    """The share of n-grams that are in the reference, of all texts."""
    found = total = 0
    for prediction, reference in zip(predictions.tolist(), references.tolist()):
        for size in (1, 2, 3, 4):
            there = ngrams(reference, size)
            for key, count in ngrams(prediction, size).items():
                found += min(count, there.get(key, 0))
                total += count
    return found / total


def all_reduce(values):
    """Through gloo, which in some builds takes host memory only."""
    try:
        dist.all_reduce(values)
    except RuntimeError:
        copied = values.cpu()
        dist.all_reduce(copied)
        values.copy_(copied)


def average_gradients(model, going):
    """Averages over the ranks; all go on while the first does."""
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = torch.cat([*(one.reshape(-1) for one in gradients), torch.tensor([float(going)], device=DEVICE)])
    all_reduce(flat)
    for gradient, part in zip(gradients, flat[:-1].split([one.numel() for one in gradients])):
        gradient.copy_(part.view_as(gradient)).div_(dist.get_world_size())
    return flat[-1].item() > 0


def train_rank(rank, world, changed, seconds, steps, folder):
    from datetime import timedelta
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world,
                            timeout=timedelta(seconds=40))
    torch.manual_seed(0)
    clock = Clock()
    loop = Loop(clock, seconds, steps)
    vocabulary, length, batch = pick(4096, 100), pick(256, 16), pick(64, 2)
    model = Transformer(vocabulary, pick(256, 32), pick(8, 2), length).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(rank)).to(DEVICE)
    every = 20 if changed else 1
    warm(lambda: train_step(model, optimizer, language_loss, tokens))
    dist.barrier()
    loop.more()
    going = True
    while going:
        with clock("step"):
            optimizer.zero_grad()
            with mixed():
                logits = model(tokens[:, :-1])
                loss = F.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
            loss.backward()
        loop.done += 1
        if rank == 0 and loop.done % every == 0:
            with clock("wait before metrics"):
                predictions = logits.argmax(-1).cpu()
                references = tokens[:, 1:].cpu()
            with clock("metrics"):
                compute_bleu(predictions, references)
        with clock("wait before all_reduce"):
            wait_for_gpu()
        with clock("all_reduce"):
            going = average_gradients(model, rank == 0 and loop.more())
        with clock("step"):
            optimizer.step()
    loop.end()
    pathlib.Path(folder, f"rank{rank}.json").write_text(json.dumps([loop.done, loop.seconds, clock.seconds]))
    dist.barrier()
    dist.destroy_process_group()


@program("Two processes train on one GPU and average gradients with gloo; rank 0 also scores texts in Python at each step, "
         "while rank 1 waits in the all-reduce.",
         "a slow rank: Python metrics on rank 0 at each step, the other rank waits in the collective", "30-65 %")
def rank_zero_metrics(changed, clock, loop):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    here = os.getcwd()
    for name in ("store", "rank0.json", "rank1.json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    torch.multiprocessing.spawn(train_rank, (2, changed, loop.limit, loop.steps, here), nprocs=2)
    loop.done, loop.seconds, clock.seconds = json.loads(pathlib.Path("rank0.json").read_text())
    clock.seconds.update({f"rank 1: {label}": seconds
                          for label, seconds in json.loads(pathlib.Path("rank1.json").read_text())[2].items()})


# 10. Matrix products in full single precision

@program("The model trains in plain float32 with TF32 off; the GPU is never idle, its tensor cores are.",
         "float32 matrix products without TF32 or bf16: slow kernels on a GPU that looks full", "60-80 %")
def fp32_matmuls(changed, clock, loop):
    if changed:
        torch.set_float32_matmul_precision("high")
    vocabulary, length, batch = pick(8192, 100), pick(1024, 16), pick(16, 2)
    model = Transformer(vocabulary, pick(1024, 32), pick(8, 2), length).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(vocabulary, (batch, length), device=DEVICE)

    def step():
        optimizer.zero_grad()
        loss = language_loss(model, tokens)
        loss.backward()
        optimizer.step()
        return loss

    warm(step)
    while loop.more():
        with clock("step"):
            loss = step()
        loop.done += 1
        if loop.done % 5 == 0:
            with clock("log"):
                loss.item()


# 11 and 12. Nothing to mend

@program("None: a large bf16 transformer on data that is already on the GPU; before and after are the same.",
         "healthy: kernels follow one another", "0 %")
def healthy_transformer(_, clock, loop):
    vocabulary, length, batch = pick(16384, 100), pick(1024, 16), pick(32, 2)
    model = Transformer(vocabulary, pick(2048, 32), pick(6, 2), length).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(vocabulary, (8 * batch, length), device=DEVICE)
    warm(lambda: train_step(model, optimizer, language_loss, tokens[:batch]))
    while loop.more():
        with clock("step"):
            at = loop.done % 8 * batch
            loss = train_step(model, optimizer, language_loss, tokens[at:at + batch])
        loop.done += 1
        if loop.done % 20 == 0:
            with clock("log"):
                loss.item()


class ByteDataset(PictureDataset):
    def __getitem__(self, index):
        return self.pictures[index], self.labels[index]


@program("None: a bf16 convolutional network fed by 8 lasting workers through pinned memory; before and after are the same.",
         "healthy: kernels follow one another, the input keeps up", "0 %")
def healthy_convnet(_, clock, loop):
    batch, side = pick(256, 4), pick(208, 16)
    dataset = ByteDataset(pick(2048, 64), side)
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=1 << 24)
    loader = DataLoader(dataset, batch_size=batch, sampler=sampler, num_workers=pick(8, 1), pin_memory=CUDA)
    model = convnet(pick(256, 8), pick(24, 2), 100)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    batches = iter(loader)

    def step():
        with clock("data"):
            pictures, labels = next(batches)
        with clock("step"):
            return train_step(model, optimizer, byte_loss, pictures.to(DEVICE, non_blocking=True),
                              labels.to(DEVICE, non_blocking=True))

    warm(step, 10)
    while loop.more():
        loss = step()
        loop.done += 1
        if loop.done % 20 == 0:
            with clock("log"):
                loss.item()


# The harness

def run_program(name, side, seconds, steps):
    begin, clock = time.monotonic(), Clock()
    torch.manual_seed(0)
    random.seed(0)
    loop = Loop(clock, seconds, steps)
    PROGRAMS[name][0](side == "after", clock, loop)
    if not loop.seconds:
        loop.end()
    print(json.dumps({"program": name, "side": side, "steps": loop.done, "loop_seconds": loop.seconds,
                      "main_thread_seconds": clock.seconds, "total_seconds": time.monotonic() - begin}), flush=True)


def below(pid):
    """Processes that came from this one, whatever became of those between: by parent, and by session."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = (int(fields[1]), int(fields[3]))
    found, more = {pid}, True
    while more:
        new = {one for one, (parent, session) in parents.items() if parent in found or session in found} - found
        found |= new
        more = bool(new)
    return found


def limited(command, here, stdout, stderr, limit=LIMIT):
    """Seconds and exit status of a command; RuntimeError where it goes on for too long, after all of it is ended."""
    begin = time.monotonic()
    with open(stdout, "w") as out, open(stderr, "w") as err:
        child = subprocess.Popen(command, cwd=here, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True)
        try:
            status = child.wait(limit)
        except BaseException as error:
            for pid in below(child.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)
            if isinstance(error, subprocess.TimeoutExpired):
                raise RuntimeError(f"did not end within {limit} s") from None
            raise
    return time.monotonic() - begin, status


def recorded(headroom, here, name, side, seconds, steps):
    """One run under the recorder: wall seconds, and what the program says of itself."""
    here.mkdir(parents=True, exist_ok=True)
    stdout, stderr = here / f"{side}.stdout", here / f"{side}.txt"
    try:
        wall, status = limited(
            [headroom, "run", "--output", str(here / f"{side}.hrec"), f"--json={here / f'{side}.why.json'}", "--",
             sys.executable, str(pathlib.Path(__file__).resolve()), "--program", name, side, str(seconds), str(steps)],
            here, stdout, stderr)
        if status != 0:
            raise RuntimeError(f"{side}: exit {status}: {stderr.read_text(errors='replace')[-300:]}")
        lines = [line for line in stdout.read_text(errors="replace").splitlines() if line.startswith('{"program"')]
        if not lines:
            raise RuntimeError(f"{side}: the program said nothing of itself")
        truth = dict(json.loads(lines[-1]), wall_seconds=wall)
    finally:
        for large in here.glob("*.pt"):
            large.unlink()
    recording = here / f"{side}.hrec"
    plan_wall, plan_status = limited([headroom, "plan", "--json", str(recording)], here, here / f"{side}.plan.json",
                                     here / f"{side}.plan.txt")
    return dict(truth, plan_seconds=plan_wall, plan_exit=plan_status)


def measured(headroom, name, folder, seconds):
    _, truth, cause, cost = PROGRAMS[name]
    row = {"name": name, "truth": truth, "cause": cause, "expected_cost": cost}
    try:
        before = recorded(headroom, folder / name, name, "before", seconds, 0)
        row.update(steps=before["steps"], main_thread_seconds=before["main_thread_seconds"],
                   before={key: before[key] for key in ("wall_seconds", "loop_seconds", "plan_seconds", "plan_exit")})
        after = recorded(headroom, folder / name, name, "after", 0, before["steps"])
        row.update(main_thread_seconds_after=after["main_thread_seconds"],
                   after={key: after[key] for key in ("wall_seconds", "loop_seconds", "plan_seconds", "plan_exit")})
        if after["steps"] != before["steps"]:
            raise RuntimeError(f"after did {after['steps']} steps of {before['steps']}")
        row.update(wall_gain=before["wall_seconds"] / after["wall_seconds"],
                   loop_gain=before["loop_seconds"] / after["loop_seconds"],
                   loop_share_of_fault=1 - after["loop_seconds"] / before["loop_seconds"])
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        row["error"] = str(error)
    return row


def words(row):
    if "error" in row:
        return f"{row['name']:<20} passed over: {' '.join(row['error'].split())}"
    return (f"{row['name']:<20} wall {row['before']['wall_seconds']:5.1f} -> {row['after']['wall_seconds']:5.1f} s  "
            f"loop {row['before']['loop_seconds']:5.1f} -> {row['after']['loop_seconds']:5.1f} s  "
            f"{row['steps']} steps, gain {row['loop_gain']:.2f} of the loop")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headroom", nargs="?")
    parser.add_argument("--program", nargs=4, metavar=("NAME", "SIDE", "SECONDS", "STEPS"))
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--output")
    options = parser.parse_args()
    if options.program:
        name, side, seconds, steps = options.program
        return run_program(name, side, float(seconds), int(steps))
    names = options.only.split(",") if options.only else list(PROGRAMS)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown or not options.headroom or not options.output:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "HEADROOM and --output are needed")
    headroom, folder = str(pathlib.Path(options.headroom).resolve()), pathlib.Path(options.output).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in names:
        rows.append(measured(headroom, name, folder, options.seconds))
        print(words(rows[-1]), flush=True)
        (folder / "pairs.json").write_text(json.dumps(rows, indent=1))
    return None


if __name__ == "__main__":
    sys.exit(main())
