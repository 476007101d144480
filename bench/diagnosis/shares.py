# SPDX-License-Identifier: Apache-2.0
"""Shares with their intervals, and medians."""
import math


def wilson(count, of, z=1.96):
    """The 95 % interval of a share (E. B. Wilson 1927): (low, high), of 0..1."""
    if not of:
        return 0.0, 1.0
    share, square = count / of, z * z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def percent(count, of):
    """"83 % (70-91), 35/42": a share, its interval, and what it is made of."""
    if not of:
        return "-"
    low, high = wilson(count, of)
    return f"{100 * count / of:.0f} % ({100 * low:.0f}-{100 * high:.0f}), {count}/{of}"


def median(values):
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
