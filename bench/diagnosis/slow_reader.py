# SPDX-License-Identifier: Apache-2.0
"""Reads its input slowly, 64 KiB at a time: slow_reader.py MILLISECONDS"""
import os
import sys
import time

while os.read(0, 1 << 16):
    time.sleep(float(sys.argv[1]) / 1000)
