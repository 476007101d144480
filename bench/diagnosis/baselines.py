# SPDX-License-Identifier: Apache-2.0
"""What others' rules would say, each given what its own tool could see: shares of the step time are those that the program
itself measured (Case.inside), more than any of these tools gets; utilisation and memory are the driver's.

A rule names causes, the first one first, and predicts a gain where it states one. The thresholds are the published ones; how a
tool's words map to causes of the catalogue is ours.
"""
import dataclasses

# The three most frequent categories of Gao et al. (ICSE 2024).
ICSE_ORDER = ("pageable_copies", "batch_too_small", "checkpoint_sync")


@dataclasses.dataclass(frozen=True)
class Said:
    causes: tuple          # () says nothing; ("healthy",) says that all is well
    gain: float | None = None


@dataclasses.dataclass(frozen=True)
class Seen:
    """What a rule may look at; all shares 0..1."""
    util: float
    peak_memory: float
    inside: dict
    workers: bool


def seen(case, answer):
    """From a case and headroom.why/1 of it: the mean over GPUs of what the driver said."""
    def mean(metric, statistic, scale):
        values = [device["metrics"].get(metric, {}).get(statistic) for device in answer["devices"]]
        values = [value / scale(device) for value, device in zip(values, answer["devices"]) if value is not None]
        return sum(values) / len(values) if values else 0.0

    util = mean("gpu_util_ratio", "mean", lambda device: 1)
    memory = mean("memory_used_bytes", "max", lambda device: device["memory_total_bytes"] or 1)
    return Seen(util, memory, case.inside, case.facts.get("workers", False))


def input_cause(sees):
    return "input_too_few_workers" if sees.workers else "input_in_main_process"


def icse_prior(sees):
    return Said(ICSE_ORDER)


def icse_rules(sees):
    """At most half utilised: the batch is improper where at most half of the memory is used, memory is short above 80 %."""
    if sees.util > 0.5:
        return Said(("healthy",))
    if sees.peak_memory <= 0.5:
        return Said(("batch_too_small",))
    return Said(("memory_limited",) if sees.peak_memory > 0.8 else ())


def tensorboard(sees):
    """PyTorch's plug-in: data loading above 5 % of a step, communication above 10 %, below half utilised, memory above 90 %."""
    causes = []
    if sees.inside["input"] > 0.05:
        causes.append(input_cause(sees))
    if sees.inside["peer"] > 0.10:
        causes.append("exposed_communication")
    if sees.util < 0.5:
        causes.append("batch_too_small")
    if sees.peak_memory > 0.9:
        causes.append("memory_limited")
    return Said(tuple(causes) or ("healthy",))


def tensorflow(sees):
    """The profiler's input pipeline and kernel launch: from 5 and 3 % of a step moderate, from 20 and 15 % high."""
    grades = sorted(((sees.inside["input"] / 0.20, input_cause(sees), sees.inside["input"] >= 0.05),
                     (sees.inside["launch"] / 0.15, "launch_bound", sees.inside["launch"] >= 0.03)), reverse=True)
    return Said(tuple(cause for _, cause, said in grades if said) or ("healthy",))


def traceml(sees):
    """A phase of the step from 10 % is reported, from 20 % as critical: input, waits for peers, and the rest of the host."""
    parts = sorted(((sees.inside["input"], input_cause(sees)), (sees.inside["peer"], "straggler"),
                    (sees.inside["launch"], "host_graph_building")), reverse=True)
    return Said(tuple(cause for share, cause in parts if share >= 0.10) or ("healthy",))


def one_over_util(sees):
    return Said(("batch_too_small",) if sees.util < 0.95 else ("healthy",), 1 / max(0.01, sees.util))


def no_gain(sees):
    return Said(("healthy",), 1.0)


RULES = {"ICSE'24 order": icse_prior, "ICSE'24 rules": icse_rules, "TensorBoard": tensorboard, "TensorFlow": tensorflow,
         "TraceML": traceml, "1/utilisation": one_over_util, "no gain": no_gain}
