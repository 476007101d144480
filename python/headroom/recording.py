# SPDX-License-Identifier: Apache-2.0
"""A recording as plain dicts and lists; as pandas frames where pandas is installed."""
import json
import os
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from headroom import _binary

Json = Dict[str, Any]


class Recording:
    """A recording, or any log that `headroom why` takes: a path, or "last".

    Answers are those of the program (docs/json.md): times on the clock of the recording, in nanoseconds. Each question
    is asked once and kept; make a new object for a recording that has grown.
    """

    def __init__(self, path: "Union[str, os.PathLike[str]]" = "last", *, binary: Optional[str] = None) -> None:
        self.path = os.fspath(path)
        self._binary = _binary.find_binary(binary)
        self._explained: Dict[Tuple[str, ...], Json] = {}
        self._read: Optional[_Contents] = None

    def __repr__(self) -> str:
        return "headroom.Recording(%r)" % self.path

    def why(self, *options: str) -> Json:
        """All of `headroom why --json`, with further options of it."""
        if options not in self._explained:
            text = _binary.answer(self._binary, ["why", self._argument(), "--json", *options])
            self._explained[options] = json.loads(text)
        return self._explained[options]

    def headline(self) -> str:
        return str(self.why()["headline"])

    def ledger(self) -> Json:
        """`budget_ns` and `accounts`, whose `ns` sum to it."""
        return dict(self.why()["ledger"])

    def findings(self) -> List[Json]:
        """What time was lost to, the most first."""
        return list(self.why()["findings"])

    def phases(self) -> List[Json]:
        """The report's table of phases."""
        return list(self.why()["phases"])

    def work(self) -> Optional[Json]:
        """Steps and samples a second, where the job counts them."""
        work: Optional[Json] = self.why().get("work")
        return work

    def devices(self) -> List[Json]:
        return list(self.why()["devices"])

    def losses(self) -> List[Json]:
        """What the recording could not keep."""
        return list(self.why()["losses"])

    def meta(self) -> Json:
        """What the recording says of itself: command, start, tiers, ..."""
        return dict(self._contents().meta)

    def metrics(self) -> List[str]:
        """The names that `series` takes."""
        return sorted({name for columns in self._contents().columns for name in columns})

    def series(self, metric: str, kind: Optional[str] = None) -> List[Json]:
        """Every reading of a metric (docs/metrics.md), one dict for each device, process, ... that has any.

        `source` and `kind` ("gpu", "process", ...) say whose; `at_ns` and `values` are lists of the same length. A
        reading that could not be had is None there, and `absent` has the reason by position.
        """
        contents = self._contents()
        found = []
        for source, columns in zip(contents.sources, contents.columns):
            if metric in columns and kind in (None, source["kind"]):
                at, values, absent = columns[metric]
                found.append({"source": source["key"], "kind": source["kind"], "attrs": source.get("attrs", {}),
                              "at_ns": list(at), "values": list(values), "absent": dict(absent)})
        if not found:
            _check_metric(metric, self.metrics())
        return found

    def events(self, kind: Optional[str] = None) -> List[Json]:
        """`{event, at_ns, source, attrs}` in order of time: `job_start`, `metric_value`, ..."""
        return [event for event in self._contents().events if kind in (None, event["event"])]

    def marks(self) -> Json:
        """What the job said of itself.

        `phases`: list of `{source, name, path, begin_ns, end_ns}`, one for each time that a phase was the innermost
        one open; `path` has those around it. `steps` and `samples`: as `series`. `metrics`: list of `{at_ns, name,
        value, source}`; `parameters`: the last value by name, also of several processes: events("parameter") has each.
        """
        contents = self._contents()
        metrics = [{"at_ns": event["at_ns"], "name": event["attrs"].get("name", ""),
                    "value": float(event["attrs"].get("value", "nan")), "source": event["source"]}
                   for event in self.events("metric_value")]
        parameters = {event["attrs"].get("name", ""): event["attrs"].get("value", "")
                      for event in self.events("parameter")}
        known = self.metrics()
        return {"phases": contents.phases(), "metrics": metrics, "parameters": parameters,
                "steps": self.series("steps_total") if "steps_total" in known else [],
                "samples": self.series("samples_total") if "samples_total" in known else []}

    def frame(self, what: str) -> Any:
        """A pandas.DataFrame: of a metric by its name, or of "ledger", "findings", "phases", "events", "marks"."""
        pandas = _pandas()
        if what == "ledger":
            return pandas.DataFrame(self.ledger()["accounts"])
        if what == "marks":
            return self._timed(pandas.DataFrame(self.marks()["phases"]), {"begin": "begin_ns", "end": "end_ns"})
        if what == "events":
            return self._timed(pandas.DataFrame(self.events()), {"time": "at_ns"})
        if what in ("findings", "phases"):
            return pandas.DataFrame(getattr(self, what)())
        columns: Dict[str, List[Any]] = {"at_ns": [], "source": [], "kind": [], what: []}
        for one in self.series(what):
            columns["at_ns"] += one["at_ns"]
            columns[what] += one["values"]
            columns["source"] += [one["source"]] * len(one["at_ns"])
            columns["kind"] += [one["kind"]] * len(one["at_ns"])
        return self._timed(pandas.DataFrame(columns), {"time": "at_ns"})

    def _timed(self, frame: Any, columns: Dict[str, str]) -> Any:
        """The same with columns of UTC times, where the recording knows the date."""
        meta = self._contents().meta
        since = meta.get("start_realtime_ns")
        if since:
            for name, of in columns.items():
                if of in frame:
                    unix = frame[of] - meta.get("start_ns", 0) + since
                    frame[name] = _pandas().to_datetime(unix, unit="ns", utc=True)
        return frame

    def _argument(self) -> str:
        return os.path.join(".", self.path) if self.path.startswith("-") else self.path

    def _contents(self) -> "_Contents":
        if self._read is None:
            arguments = ["export", self._argument(), "--format", "jsonl"]
            self._read = _Contents(_binary.lines(self._binary, arguments))
        return self._read


class _Contents:
    """The text form of a recording (docs/recording-format.md), by source and metric."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.meta: Json = {}
        self.sources: List[Json] = []
        self.columns: List[Dict[str, Tuple[List[int], List[Any], Dict[int, str]]]] = []
        self.events: List[Json] = []
        self._texts: List[str] = []
        self._lists: List[List[int]] = []
        self._list_rows: List[Tuple[int, int, int]] = []
        for line in lines:
            self._take(json.loads(line))

    def _take(self, one: Json) -> None:
        if "row" in one:
            self._take_row(*one["row"])
        elif "list_row" in one:
            source, at, number = one["list_row"][:3]
            self._list_rows.append((source, at, number))
        elif "event" in one:
            source = one.get("source")
            self.events.append({"event": one["event"], "at_ns": one["at"], "attrs": one.get("attrs", {}),
                                "source": None if source is None else self.sources[source]["key"]})
        elif "source" in one:
            self.sources.append(one)
            self.columns.append({})
        elif "text" in one:
            self._texts.append(one["is"])
        elif "list" in one:
            self._lists.append(one["texts"])
        elif "recording" in one:
            self.meta = one.get("meta", {})

    def _take_row(self, source: int, at: int, cells: Json) -> None:
        columns = self.columns[source]
        for name, value in cells.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = ([], [], {})
            if isinstance(value, str):
                column[2][len(column[0])] = value
                value = None
            column[0].append(at)
            column[1].append(value)

    def phases(self) -> List[Json]:
        by_source: Dict[int, List[Tuple[int, List[str]]]] = {}
        for source, at, number in self._list_rows:
            if self.sources[source]["kind"] == "marks":
                path = [self._texts[text] for text in self._lists[number]]
                by_source.setdefault(source, []).append((at, path))
        found = []
        for source, rows in by_source.items():
            ends = [at for at, _ in rows[1:]] + [self.meta.get("end_ns", rows[-1][0])]
            found += [{"source": self.sources[source]["key"], "name": path[-1], "path": path, "begin_ns": at,
                       "end_ns": max(at, end)} for (at, path), end in zip(rows, ends) if path]
        return sorted(found, key=lambda phase: (phase["begin_ns"], phase["source"]))


def _check_metric(name: str, known: List[str]) -> None:
    import difflib
    close = difflib.get_close_matches(name, known, 1)
    if name not in known:
        raise KeyError("no reading of %r in this recording%s" % (name, "; did you mean %r?" % close[0] if close else ""))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise _binary.HeadroomError("frames need pandas, which is not installed; everything else does not") from None
    return pandas
