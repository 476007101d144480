# SPDX-License-Identifier: Apache-2.0
"""A helper program that makes a batch for every line it is given: decoder.py MILLISECONDS"""
import sys

from waste import burn

for _ in sys.stdin.buffer:
    burn(float(sys.argv[1]))
    sys.stdout.buffer.write(b"batch\n")
    sys.stdout.buffer.flush()
