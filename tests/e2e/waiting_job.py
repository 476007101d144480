#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose process on a virtual GPU waits for another process or another GPU: one scenario by name, for some
seconds. What waits for what is known from how they are written."""
import multiprocessing
import socket
import subprocess
import sys
import time

import headroom_sim


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def kernels(gpu, ms):
    gpu.launch(ms=ms, sm=0.8)
    gpu.sync()


def exchange(link):
    link.send(b"gradients")
    link.recv()


def talk(link):
    link.sendall(b"x")
    link.recv(1)


def rank(number, link, seconds, meet, work):
    gpu = headroom_sim.Device(number)
    gpu.create_context()
    for _ in range(int(seconds * 8)):
        kernels(gpu, 30)
        if number == 0:
            work(gpu)
        meet(link)


def longer_kernels(gpu):
    kernels(gpu, 90)


def rest(_gpu):
    time.sleep(0.09)


def two_ranks(links, seconds, meet, work):
    other = multiprocessing.Process(target=rank, args=(1, links[1], seconds, meet, work))
    other.start()
    rank(0, links[0], seconds, meet, work)
    other.join()


def pipe(seconds):
    two_ranks(multiprocessing.Pipe(), seconds, exchange, longer_kernels)


def barrier(seconds):
    gate = multiprocessing.Barrier(2)
    two_ranks((gate, gate), seconds, lambda link: link.wait(), rest)


def connection(seconds):
    two_ranks(socket.socketpair(), seconds, talk, longer_kernels)


def turns(seconds):
    gpus = [headroom_sim.Device(0), headroom_sim.Device(1)]
    for _ in range(int(seconds / 0.08)):
        for gpu in gpus:
            kernels(gpu, 40)


def child(seconds):
    gpu = headroom_sim.Device(0)
    for _ in range(100):
        kernels(gpu, 20)
    subprocess.run([sys.executable, __file__, "burn", str(seconds)], check=True)


def burn(seconds):
    compute(seconds)


def write_lines(seconds):
    for _ in range(int(seconds * 20)):
        print("sample", flush=True)
        time.sleep(0.05)


def lines(_seconds):
    gpu = headroom_sim.Device(0)
    for _ in sys.stdin:
        kernels(gpu, 5)


def evaluate():
    compute(0.5)


def blend():
    compute(0.02)


def helper(seconds):
    gpu = headroom_sim.Device(0)
    for _ in range(int(seconds)):
        for _ in range(12):
            blend()
            kernels(gpu, 20)
        evaluate()


def out_of_memory(_seconds):
    gpu = headroom_sim.Device(0)
    held = []
    while True:
        held.append(gpu.malloc(2 << 30))
        kernels(gpu, 100)


if __name__ == "__main__":
    globals()[sys.argv[1]](float(sys.argv[2]))
