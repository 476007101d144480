#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training program on the CPU whose GPU work is virtual:

    headroom sim --gpus 1xA100-80 -- headroom run -- python3 examples/torch_train.py --workers 2

Model, DataLoader workers, loss and optimizer are PyTorch's and real; each step also launches a kernel on the virtual
GPU and waits for it, as a step that reads its loss does. The last line of its output is what it knows about itself, as
JSON: wall seconds, seconds waited for the loader, and device seconds by the tickets of its kernels.
"""
import argparse
import json
import time

BEGIN = time.monotonic()
import torch  # noqa: E402  (its import is part of the start-up)
from torch.utils.data import DataLoader, Dataset  # noqa: E402

import headroom_sim  # noqa: E402


class Samples(Dataset):
    """Synthetic samples that cost a known amount of CPU time, spread over the samples of a batch."""

    def __init__(self, count, features, cpu_seconds):
        self.count, self.features, self.cpu_seconds = count, features, cpu_seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        end = time.thread_time() + self.cpu_seconds
        generator = torch.Generator().manual_seed(index)
        sample = torch.randn(self.features, generator=generator)
        while time.thread_time() < end:
            sample = sample * 1.0
        return sample, sample.sum().sign()


class Gpu:
    """The virtual device, and the busy time of the kernels that this process launched, in its own bookkeeping."""

    def __init__(self, memory_bytes):
        self.device = headroom_sim.Device(0)
        self.memory = self.device.malloc(memory_bytes)
        self.kernel_ms = 0.0

    def run(self, ms):
        self.device.launch(ms=ms, sm=0.8)
        self.device.record().wait()
        self.kernel_ms += ms

    def kernel_seconds(self):
        return self.device.stats()["kernel_ns"] / 1e9


def train(options, gpu):
    """Returns seconds waited for the loader and steps done."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(options.features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = Samples(options.steps * options.batch, options.features, options.loader_ms / options.batch / 1000)
    loader = DataLoader(samples, batch_size=options.batch, num_workers=options.workers,
                        persistent_workers=options.workers > 0)
    waited, steps = 0.0, 0
    for epoch in range(options.epochs):
        batches, loss = iter(loader), None
        while True:
            asked = time.monotonic()
            batch = next(batches, None)
            waited += time.monotonic() - asked
            if batch is None:
                break
            inputs, targets = batch
            gpu.device.copy(inputs.numel() * inputs.element_size())
            loss = torch.nn.functional.soft_margin_loss(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            gpu.run(options.step_ms)
            steps += 1
        if not options.quiet:
            print(f"epoch {epoch + 1}/{options.epochs}  loss {loss.item():.3f}", flush=True)
    return waited, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="DataLoader workers; 0: in the training process")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="per epoch")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--loader-ms", type=float, default=20, help="CPU time of a batch in the loader")
    parser.add_argument("--step-ms", type=float, default=10, help="kernel time of a step")
    parser.add_argument("--quiet", action="store_true", help="only the last line")
    options = parser.parse_args()

    torch.set_num_threads(1)
    imported = time.monotonic()
    gpu = Gpu(2 << 30)
    waited, steps = train(options, gpu)
    end = time.monotonic()
    print(json.dumps({
        "wall_seconds": round(end - BEGIN, 4), "import_seconds": round(imported - BEGIN, 4), "steps": steps,
        "loader_wait_seconds": round(waited, 4), "device_busy_seconds": round(gpu.kernel_seconds(), 4),
        "launched_seconds": round(gpu.kernel_ms / 1000, 4)}), flush=True)


if __name__ == "__main__":
    main()
