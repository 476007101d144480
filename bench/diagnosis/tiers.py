# SPDX-License-Identifier: Apache-2.0
"""A recording's text form (headroom export -f jsonl) with fewer sources of evidence, as if they had not been there."""
import json

# Kinds of source by the tier that fills them; the others (the recorder) belong to all.
KINDS = {"gpu": "N", "gpu_process": "N", "gpu_power_ring": "N", "gpu_util_ring": "N", "process": "P", "cgroup": "P",
         "host": "P", "python_thread": "Y"}
STEPS = ("N", "NP", "NPYL")  # what the benchmark reports


def tier_of(source):
    if source["kind"] == "marks":
        return "L" if source.get("attrs", {}).get("via") == "output" else "X"
    return KINDS.get(source["kind"], "")


class Filter:
    """Of the entries of a recording those that remain at some tiers, with their sources numbered anew."""

    def __init__(self, entries, tiers):
        self.tiers, self.numbers = tiers, {}
        # The driver tells which processes use a GPU; without /proc nothing else is known of them.
        self.on_gpus = {entry["key"].split("/", 1)[1] for entry in entries if entry.get("kind") == "gpu_process"}

    def meta(self, entry):
        meta = entry["meta"]
        gone = [tier for tier in meta.get("tiers", "") if tier not in self.tiers]
        meta["tiers"] = "".join(tier for tier in meta.get("tiers", "") if tier in self.tiers)
        meta.setdefault("missing_tiers", []).extend({"tier": tier, "why": "left out"} for tier in gone)
        return entry

    def source(self, entry):
        tier = tier_of(entry)
        if tier and tier not in self.tiers:
            if entry["kind"] != "process" or entry["key"] not in self.on_gpus:
                return None
            known = ("pid", "start_ns", "in_job")
            entry["attrs"] = {key: value for key, value in entry.get("attrs", {}).items() if key in known}
            self.numbers[entry["source"]] = (len(self.numbers), False)
        else:
            self.numbers[entry["source"]] = (len(self.numbers), True)
        entry["source"] = self.numbers[entry["source"]][0]
        if "parent" in entry:
            parent, _ = self.numbers.get(entry["parent"], (None, False))
            entry.pop("parent") if parent is None else entry.update(parent=parent)
        return entry

    def numbered(self, entry, name, number):
        """… of a row or an event; None where its source has no evidence at these tiers."""
        new, speaks = self.numbers.get(number, (None, False))
        if not speaks:
            return None
        if name == "source":
            entry["source"] = new
        else:
            entry[name][0] = new
        return entry

    def keep(self, entry):
        if "recording" in entry:
            return self.meta(entry)
        if "kind" in entry and "source" in entry:
            return self.source(entry)
        for name in ("row", "list_row"):
            if name in entry:
                return self.numbered(entry, name, entry[name][0])
        if "event" in entry and "source" in entry:
            return self.numbered(entry, "source", entry["source"])
        if entry.get("event") == "note" and "L" not in self.tiers and "by its output" in entry["attrs"]["text"]:
            return None
        if "loss" in entry and self.tiers != STEPS[-1]:  # of readers that were not there
            return None
        return entry


def kept(lines, tiers):
    """The lines of a recording at these tiers."""
    entries = [json.loads(line) for line in lines]
    rule = Filter(entries, tiers)
    for entry in entries:
        if (left := rule.keep(entry)) is not None:
            yield json.dumps(left, separators=(",", ":"))
