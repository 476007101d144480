# SPDX-License-Identifier: Apache-2.0
"""What a job says of itself is recorded (docs/marks.md): from C, from NVTX, whatever becomes of job and recorder."""
import glob
import json
import os
import pathlib
import signal
import subprocess

import pytest
from live_support import HEADROOM, PATIENCE, Recording, environment, state_of, text_of, wait_until

BUILD = pathlib.Path(os.environ["HEADROOM_BUILD"])
MARKS, NVTX = str(BUILD / "inject/marks_program"), str(BUILD / "inject/nvtx_program")
LIBRARIES = BUILD / "src/lib/headroom"
LONG = "sleep:60"  # ms: more than the shortest phase that is kept


@pytest.fixture(name="place")
def rings_place(tmp_path):
    """Where recorders of this test make their directories."""
    place = tmp_path / "runtime"
    place.mkdir(mode=0o700)
    return place


def run(tmp_path, place, *command, options=(), sim=False, output="run.hrec", **more):
    words = [HEADROOM, "run", "--quiet", "-o", str(tmp_path / output), *options, "--", *map(str, command)]
    if sim:
        words = [HEADROOM, "sim", "--gpus", "1xA6000", "--", *words]
    else:
        words.insert(2, "--no-gpu")
    more.setdefault("NVTX_INJECTION64_PATH", None)
    env = environment(tmp_path, XDG_RUNTIME_DIR=str(place), **more)
    if sim:
        del env["HEADROOM_NVML"]
    return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)


class Marks:
    """The kMarks sources of a recording, as its text form has them."""

    def __init__(self, tmp_path, output="run.hrec"):
        done = subprocess.run([HEADROOM, "export", "-f", "jsonl", "-o", "-", str(tmp_path / output)],
                              env=environment(tmp_path), capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        texts = {line["text"]: line["is"] for line in lines if "text" in line}
        lists = {line["list"]: [texts[t] for t in line["texts"]] for line in lines if "list" in line}
        self.sources = {line["source"]: line for line in lines if line.get("kind") == "marks" and "source" in line}
        self.kinds = {line["source"]: line for line in lines if "kind" in line and "source" in line}
        self.phases = {number: [] for number in self.sources}
        for line in lines:
            if "list_row" in line and line["list_row"][0] in self.phases:
                self.phases[line["list_row"][0]].append("/".join(lists[line["list_row"][2]]))
        self.steps = {line["row"][0]: line["row"][2]["steps_total"] for line in lines
                      if "row" in line and line["row"][0] in self.sources}
        self.events = [(line["event"], line["attrs"]) for line in lines if "event" in line]
        self.losses = {line["loss"]: line["count"] for line in lines if "loss" in line}

    def of(self, name):
        return [attrs for kind, attrs in self.events if kind == name]


def tiers(tmp_path, output="run.hrec"):
    meta = Recording(tmp_path / output).meta
    return meta["tiers"], {tier["tier"]: tier["why"] for tier in json.loads(meta["missing_tiers"])}


# --- what arrives -----------------------------------------------------------------------------------------------------

def test_marks_of_a_c_program_are_recorded(tmp_path, place):
    done = run(tmp_path, place, MARKS, "begin:epoch", LONG, "begin:train", "step:32", LONG, "step:32", "end:train", LONG,
               "metric:val_loss=0.25", "parameter:lr=1e-3", "end:epoch", LONG, "phase:save", LONG, sim=True)
    assert done.returncode == 0, done.stderr
    marks = Marks(tmp_path)
    [(number, source)] = marks.sources.items()
    assert source["attrs"]["via"] == "marks" and source["key"].endswith(f"/{source['attrs']['tid']}/marks")
    assert marks.phases[number][:5] == ["epoch", "epoch/train", "epoch", "", "save"]
    assert marks.steps[number] == 2
    assert [(m["name"], float(m["value"])) for m in marks.of("metric_value")] == [("val_loss", 0.25)]
    assert [(p["name"], p["value"]) for p in marks.of("parameter")] == [("lr", "1e-3")]
    process = marks.kinds[source["parent"]]
    assert process["kind"] == "process" and process["attrs"]["comm"] == "marks_program"  # joined with what /proc says
    assert "X" in tiers(tmp_path)[0]
    assert not any(loss.startswith("mark_") for loss in marks.losses)
    assert list(place.iterdir()) == []


def test_ranges_of_nvtx_are_recorded_without_a_change_to_the_job(tmp_path, place):
    done = run(tmp_path, place, NVTX, "loaded:1", "push:epoch", LONG, "dpush:a:backward", LONG, "dpop:a", LONG, "pop",
               "start:copy", LONG, "thread-end", sim=True)
    assert done.returncode == 0, done.stderr
    marks = Marks(tmp_path)
    [(number, source)] = marks.sources.items()
    assert source["attrs"]["via"] == "nvtx"
    assert marks.phases[number][:4] == ["epoch", "epoch/backward", "epoch", "copy"]


def test_a_program_with_nvidias_own_header_is_understood(tmp_path, place):
    headers = glob.glob("/usr/local/cuda*/include/nvtx3/nvToolsExt.h") + glob.glob("/usr/include/nvtx3/nvToolsExt.h")
    if not headers:
        pytest.skip("not possible here: NVIDIA's NVTX header is not installed")
    (tmp_path / "real.c").write_text(r"""
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>
int main(void) {
  int wrong = nvtxRangePushA("epoch") != 0;
  usleep(60000);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "forward");
  wrong |= nvtxDomainRangePushEx(domain, &event) != 0;
  usleep(60000);
  wrong |= nvtxDomainRangePop(domain) != 0;
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE, event.message.unicode = L"w\u00e4rm";
  wrong |= nvtxRangePushEx(&event) != 1;
  usleep(60000);
  wrong |= nvtxRangePop() != 1;
  nvtxRangeId_t range = nvtxRangeStartA("copy");
  nvtxMarkA("a mark");
  nvtxNameOsThreadA(1, "a thread");
  usleep(60000);
  nvtxRangeEnd(range);
  nvtxDomainDestroy(domain);
  usleep(60000);
  wrong |= nvtxRangePop() != 0;
  return wrong;
}
""")
    subprocess.run(["cc", f"-I{pathlib.Path(headers[0]).parents[1]}", "-o", tmp_path / "real", tmp_path / "real.c", "-ldl"],
                   check=True)
    assert run(tmp_path, place, tmp_path / "real").returncode == 0
    [phases] = Marks(tmp_path).phases.values()
    assert phases[:5] == ["epoch", "epoch/forward", "epoch/wärm", "epoch/copy", "epoch"]


def test_children_after_fork_have_tracks_of_their_own(tmp_path, place):
    assert run(tmp_path, place, MARKS, "begin:parent", LONG, "fork", "begin:both", LONG, "end:both", "wait").returncode == 0
    marks = Marks(tmp_path)
    assert sorted(phases[:2] for phases in marks.phases.values()) == [["both", ""], ["parent", "parent/both"]]
    assert len({source["parent"] for source in marks.sources.values()}) == 2


def test_a_job_that_is_over_at_once_loses_nothing(tmp_path, place):
    assert run(tmp_path, place, MARKS, "begin:all", "step:1", "metric:loss=1", "step:1").returncode == 0
    marks = Marks(tmp_path)
    assert list(marks.steps.values()) == [2] and len(marks.of("metric_value")) == 1


def test_a_job_that_is_killed_loses_nothing(tmp_path, place):
    done = run(tmp_path, place, MARKS, "begin:train", LONG, "begin:step", "burst:2000", "metric:loss=3", "kill")
    assert done.returncode == 128 + signal.SIGKILL
    marks = Marks(tmp_path)
    [phases], [steps] = marks.phases.values(), marks.steps.values()
    assert phases[:2] == ["train", "train/step"] and steps == 2000
    assert len(marks.of("metric_value")) == 1


def test_what_a_process_had_open_ends_with_it(tmp_path, place):
    script = f"{MARKS} begin:first {LONG}; sleep 1; {MARKS} begin:second {LONG}"
    assert run(tmp_path, place, "sh", "-c", script).returncode == 0
    phases = list(Marks(tmp_path).phases.values())
    assert phases[0] == ["first", ""] and phases[1][0] == "second"


# --- what is in nobody's way ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("spoil", ["garbage", "truncate"])
def test_a_job_that_spoils_its_ring_is_recorded_all_the_same(tmp_path, place, spoil):
    done = run(tmp_path, place, MARKS, "begin:train", "burst:100", "sleep:600", spoil, "sleep:600")
    assert done.returncode == 0, done.stderr
    marks = Marks(tmp_path)
    assert any(phases[:1] == ["train"] for phases in marks.phases.values())
    assert (spoil == "truncate") == ("mark_cut" not in marks.losses)


def test_files_in_the_directory_that_are_no_rings_are_left_alone(tmp_path, place):
    script = f"""cd $HEADROOM_MARKS; mkfifo 1-0123456789abcdef.marks; ln -s /etc/passwd 2-0123456789abcdef.marks
head -c 100000 /dev/urandom > 3-0123456789abcdef.marks; {MARKS} begin:train {LONG}"""
    assert run(tmp_path, place, "sh", "-c", script).returncode == 0
    [phases] = Marks(tmp_path).phases.values()
    assert phases[0] == "train"
    assert list(place.iterdir()) == []
    assert os.path.exists("/etc/passwd")


def test_a_recorder_that_is_killed_leaves_the_job_unharmed_and_the_next_one_cleans_up(tmp_path, place):
    env = environment(tmp_path, XDG_RUNTIME_DIR=str(place))
    job = f"echo $$ > {tmp_path}/pid; exec {MARKS} begin:train burst:10 pid sleep:1500 burst:10 end:train fork step:1 pid wait"
    with open(tmp_path / "out", "wb") as out:
        recorder = subprocess.Popen([HEADROOM, "run", "--no-gpu", "-q", "-o", str(tmp_path / "dead.hrec"), "--", "sh", "-c",
                                     job], env=env, stdin=subprocess.DEVNULL, stdout=out, start_new_session=True)
    pid = wait_until(lambda: text_of(tmp_path / "out").split() and text_of(tmp_path / "pid").strip(), "the job to mark")
    [left] = place.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700 and len(list(left.iterdir())) == 1
    recorder.kill()
    recorder.wait()
    assert state_of(pid) not in ("", "Z")
    assert run(tmp_path, place, MARKS, "step:1", "sleep:300").returncode == 0
    assert not left.exists()
    # It marks into a file that has no name any more, forks, and finds no place for the child's: all of that is silent.
    wait_until(lambda: len(text_of(tmp_path / "out").split()) == 3 or state_of(pid) == "", "the job to end")
    wait_until(lambda: state_of(pid) in ("", "Z"), "the job to end")
    assert len(text_of(tmp_path / "out").split()) == 3
    assert list(place.iterdir()) == []


def test_a_recorder_that_lives_keeps_its_directory(tmp_path, place):
    inner = f"{HEADROOM} run --no-gpu -q -o {tmp_path}/inner.hrec -- {MARKS} begin:inner {LONG}"
    done = run(tmp_path, place, "sh", "-c", f"{MARKS} begin:before {LONG}; {inner}; {MARKS} begin:after {LONG}")
    assert done.returncode == 0, done.stderr
    assert [phases[0] for phases in Marks(tmp_path).phases.values()] == ["before", "after"]
    assert [phases[0] for phases in Marks(tmp_path, "inner.hrec").phases.values()] == ["inner"]


def test_an_inner_recorder_that_wants_no_marks_leaves_them_to_the_outer_one(tmp_path, place):
    inner = f"{HEADROOM} run --no-gpu -q --no-marks -o {tmp_path}/inner.hrec -- {MARKS} begin:inner {LONG}"
    assert run(tmp_path, place, "sh", "-c", inner).returncode == 0
    assert [phases[0] for phases in Marks(tmp_path).phases.values()] == ["inner"]
    assert not Marks(tmp_path, "inner.hrec").sources


# --- where it is not wanted, or not to be had -------------------------------------------------------------------------

def test_a_job_without_marks_has_no_such_tier(tmp_path, place):
    assert run(tmp_path, place, "sleep", "0.3").returncode == 0
    present, missing = tiers(tmp_path)
    assert "X" not in present and missing["X"] == "the job set none"


def test_no_marks_asks_for_none(tmp_path, place):
    done = run(tmp_path, place, "sh", "-c", 'echo "[$HEADROOM_MARKS$NVTX_INJECTION64_PATH]"', options=["--no-marks"])
    assert done.stdout == "[]\n"
    assert "--no-marks" in tiers(tmp_path)[1]["X"]


def test_no_nvtx_leaves_nvtx_alone(tmp_path, place):
    assert run(tmp_path, place, NVTX, "loaded:0", options=["--no-nvtx"]).returncode == 0
    assert any("--no-nvtx" in note["text"] for note in Marks(tmp_path).of("note"))


def test_somebody_elses_library_for_nvtx_stays(tmp_path, place):
    done = run(tmp_path, place, "sh", "-c", 'echo "$NVTX_INJECTION64_PATH"', NVTX_INJECTION64_PATH="/opt/other.so")
    assert done.stdout == "/opt/other.so\n"
    assert any("/opt/other.so" in note["text"] for note in Marks(tmp_path).of("note"))


def test_our_own_library_is_no_other(tmp_path, place):
    own = str(LIBRARIES / "libheadroom_nvtx.so")
    assert run(tmp_path, place, NVTX, "loaded:1", "push:a", LONG, NVTX_INJECTION64_PATH=own).returncode == 0
    assert Marks(tmp_path).sources


def test_where_there_is_no_place_the_job_runs_and_the_recording_says_why(tmp_path):
    (tmp_path / "out").mkdir()
    words = [HEADROOM, "run", "--no-gpu", "-q", "-o", "/mnt/run.hrec", "--", MARKS, "begin:a", "errno"]
    enter = f"mount --bind {tmp_path}/out /mnt && mount -t tmpfs -o size=1m tmpfs /dev/shm && mount --bind /tmp /tmp && " \
            'mount -o remount,ro,bind /tmp && exec "$@"'
    if subprocess.run(["unshare", "-m", "sh", "-c", enter, "sh", "true"], capture_output=True).returncode != 0:
        pytest.skip("not possible here: mounting needs root")
    env = environment(tmp_path, XDG_RUNTIME_DIR="/no/such/place", XDG_STATE_HOME="/mnt")
    done = subprocess.run(["unshare", "-m", "sh", "-c", enter, "sh", *words], env=env, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "/tmp" in tiers(tmp_path, "out/run.hrec")[1]["X"]


def test_a_place_without_room_is_not_filled(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], capture_output=True).returncode != 0:
        pytest.skip("not possible here: mounting a small file system needs root")
    try:
        env = environment(tmp_path, HEADROOM_MARKS=str(small))
        done = subprocess.run([MARKS, "begin:a", "errno", "burst:10", "fork", "step:1"], env=env, capture_output=True,
                              text=True, timeout=PATIENCE)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


# --- the libraries ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("library, symbols", [
    ("libheadroom_marks.so", {"headroom_phase_begin", "headroom_phase_end", "headroom_phase", "headroom_step",
                              "headroom_metric", "headroom_parameter"}),
    ("libheadroom_nvtx.so", {"InitializeInjectionNvtx2"}),
])
def test_a_library_brings_its_few_symbols_and_needs_libc_alone(library, symbols):
    path = LIBRARIES / library
    defined = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    assert {line.split()[-1] for line in defined.splitlines()} == symbols
    floor = pathlib.Path(__file__).resolve().parents[2] / "tools/glibc_floor.py"
    done = subprocess.run(["/usr/bin/python3", floor, path, "--at-most", "2.28", "--only-libc"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# --- batches ----------------------------------------------------------------------------------------------------------

def test_the_attempts_of_a_batch_mark_into_its_recording(tmp_path, place):
    tasks = tmp_path / "tasks.txt"
    tasks.write_text(f"{MARKS} begin:one step:1 {LONG}\n{NVTX} loaded:1 push:two {LONG}\n"
                     f"{MARKS} begin:three step:1 sleep:700 end:three {LONG} kill\n")
    env = environment(tmp_path, XDG_RUNTIME_DIR=str(place), NVTX_INJECTION64_PATH=None)
    words = [HEADROOM, "batch", "--gpus", "none", "--slots", "2", "--retries", "0", "--interval", "100ms", "--folder",
             str(tmp_path / "folder"), "-o", str(tmp_path / "run.hrec"), "-q", str(tasks)]
    done = subprocess.run(words, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 1, done.stdout + done.stderr  # one was killed
    marks = Marks(tmp_path)
    assert sorted(phases[0] for phases in marks.phases.values()) == ["one", "three", "two"]
    assert sum(marks.steps.values()) == 2
    assert list(place.iterdir()) == []


# --- other pid namespaces ---------------------------------------------------------------------------------------------

def test_a_process_of_another_pid_namespace_is_found(tmp_path, place):
    enter = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
        pytest.skip("not possible here: a pid namespace needs root")
    assert run(tmp_path, place, *enter, MARKS, "begin:inside", "pid", "sleep:1500", "end:inside", LONG).returncode == 0
    marks = Marks(tmp_path)
    [source] = marks.sources.values()
    assert source["attrs"]["pid"] != "1"
    assert marks.kinds[source["parent"]]["attrs"]["comm"] == "marks_program"
    [phases] = marks.phases.values()
    assert phases[:2] == ["inside", ""]
