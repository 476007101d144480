# SPDX-License-Identifier: Apache-2.0
"""Documents of studies, comparisons and verifications, and of stretches of a recording: as those of a whole recording."""
import html
import json
import re

import pytest

from headroom_e2e import headroom
from test_compare import batch
from test_report_html import ESCAPE, HOSTILE, RECORDINGS, WIDTHS, browse, in_a_browser, parsed, problems, served

optuna = pytest.importorskip("optuna")
from test_study import past_study  # noqa: E402


def study_files(tmp_path, name="past"):
    past_study(tmp_path / "study.db", name=name, trials=40)
    for path in ("study.html", "study.md"):
        headroom(tmp_path, "study", "study.db", "--replays", "5", "--tz", "UTC", "-o", path)
    return (tmp_path / "study.html").read_text("utf-8"), (tmp_path / "study.md").read_text("utf-8")


def words_of(page):
    return "".join(parsed(page).text)


def cells_of(text):
    plain = re.sub(ESCAPE, r"\1", text).replace("<!-- -->", "")
    return [cell.strip(" |") for line in plain.splitlines() if line.startswith("| ") for cell in line.strip("|").split(" | ")
            if cell.strip(" -:|")]


def headline(page):
    return html.unescape(re.search(r"<h1>(.*?)</h1>", page)[1])


def is_whole(page):
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    tags = parsed(page)
    assert tags.open == [] and {"header", "nav", "main", "section", "table"} <= tags.seen
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert "<title>" in drawing


def test_a_study_says_what_its_text_says(tmp_path):
    page, text = study_files(tmp_path)
    is_whole(page)
    found = json.loads(headroom(tmp_path, "study", "study.db", "--replays", "5", "--tz", "UTC", "--json").stdout)["studies"][0]
    words = words_of(page)
    assert "40 trials: 10 complete, 30 pruned." in words and "Learning curves" in words
    for change in found["what_if"]:
        assert change["change"] in words and all(line.strip() in words for line in change["how"].splitlines())
    for anomaly in found["anomalies"]:
        assert anomaly["text"].rstrip(".")[1:] in words
    assert page.count('class="cut"') == 1 and "where one was pruned" in words
    assert cells_of(text), "Markdown has the tables"
    assert all(cell in words for cell in cells_of(text))


def test_report_takes_the_storage_of_a_study(tmp_path):
    past_study(tmp_path / "study.db", trials=12)
    done = headroom(tmp_path, "report", "study.db")
    assert "study.report.html" in done.stderr
    is_whole((tmp_path / "study.report.html").read_text("utf-8"))
    past_study(tmp_path / "study.db", name="other")
    refused = headroom(tmp_path, "report", "study.db", check=False)
    assert refused.returncode == 2 and "2 studies" in refused.stderr and "--study" in refused.stderr
    headroom(tmp_path, "study", "study.db", "--study", "other", "-o", "other.md")
    missing = headroom(tmp_path, "report", "none.db", check=False)
    assert missing.returncode != 0 and "none.db" in missing.stderr and "study" not in missing.stderr.split("\n")[0]


def test_a_hostile_study_stays_text(tmp_path):
    page, text = study_files(tmp_path, name=HOSTILE.replace("\u202e", ""))
    assert "&lt;script&gt;alert(1)" in page
    assert parsed(page).seen.isdisjoint({"script", "img"})
    outside_code = re.sub(r"(`+).*?\1", "", re.sub(ESCAPE, "", text.replace("```", "`")).replace("<!-- -->", "\0"), flags=re.DOTALL)
    assert not re.search(r"<\w|@\w|\]\(http", outside_code)


@pytest.fixture(name="pair", scope="module")
def made_pair(tmp_path_factory):
    """Two batches of which one does the same in less time."""
    folder = tmp_path_factory.mktemp("pair")
    batch(folder, "slow", "AB", "--ms", "40")
    batch(folder, "fast", "AB", "--ms", "20")
    return folder


def comparison(folder, *more, name="c"):
    done = headroom(folder, "compare", "slow.toml", "fast.toml", "--changed", "ms", *more, "-o", f"{name}.html", check=False)
    headroom(folder, "compare", "slow.toml", "fast.toml", "--changed", "ms", *more, "-o", f"{name}.md", check=False)
    return done, (folder / f"{name}.html").read_text("utf-8"), (folder / f"{name}.md").read_text("utf-8")


def test_a_comparison_is_the_text_drawn(pair):
    done, page, text = comparison(pair)
    is_whole(page)
    words = words_of(page)
    first = re.sub(r"\s+", " ", done.stdout)
    assert headline(page).rstrip(".") in first
    assert all(cell in words for cell in cells_of(text))
    _, refused, _ = comparison(pair, "--steps", name="r")
    assert "cannot be compared" in refused and "Why they cannot be compared" in refused
    is_whole(refused)


def test_a_report_of_two_is_the_document_of_their_comparison(pair):
    headroom(pair, "compare", "slow.toml", "fast.toml", "-o", "compared.html")
    headroom(pair, "compare", "slow.toml", "fast.toml", "-o", "compared.md")
    done = headroom(pair, "report", "slow.toml", "fast.toml")
    assert done.stdout == "" and (pair / "slow-fast.report.html").read_bytes() == (pair / "compared.html").read_bytes()
    headroom(pair, "report", "slow.toml", "fast.toml", "-o", "compared.md")  # it replaces its like
    assert headroom(pair, "report", "slow.toml", "fast.toml", "-o", "-", "--as", "md").stdout == (pair / "compared.md").read_text("utf-8")
    for wrong, said in ((["--from", "1s"], "--from is for the report of one recording"), (["-o", "x.pdf"], "neither with .html")):
        refused = headroom(pair, "report", "slow.toml", "fast.toml", *wrong, check=False)
        assert refused.returncode == 2 and said in refused.stderr


def test_a_report_of_two_has_what_both_left(pair):
    for side, loss in (("a", 0.5), ("b", 0.7)):
        (pair / f"out_{side}").mkdir()
        (pair / f"out_{side}" / "loss.json").write_text(json.dumps({"loss": loss}))
        (pair / f"out_{side}" / "same.txt").write_text("same")
    left = ["--artefacts", "out_a", "out_b"]
    text = headroom(pair, "report", "slow.toml", "fast.toml", *left, "-o", "-", "--as", "md").stdout
    assert "1 of 1 number differ" in text and "same.txt" in text
    near = headroom(pair, "report", "slow.toml", "fast.toml", *left, "--tolerance", "0.5", "-o", "-", "--as", "md").stdout
    assert "1 of 1 number differ" not in near and "loss.json" in near
    alone = headroom(pair, "report", "slow.toml", *left, check=False)
    assert alone.returncode == 2 and "--artefacts is for the report of two" in alone.stderr


def test_a_verification_shows_what_was_promised(tmp_path):
    recording = RECORDINGS["input"]
    plan = headroom(tmp_path, "plan", recording, "--json").stdout
    (tmp_path / "plan.json").write_text(plan)
    option = json.loads(plan)["options"][0]["id"]
    done = headroom(tmp_path, "verify", "plan.json", recording, "--applied", option, "--no-history", "-o", "v.html", check=False)
    page = (tmp_path / "v.html").read_text("utf-8")
    is_whole(page)
    assert headline(page).split(":")[0] in re.sub(r"\s+", " ", done.stdout)
    assert "plan.json" in page


def test_the_name_of_a_document_is_looked_at_first(tmp_path):
    for arguments in (["compare", "a", "b"], ["study", "none.db"], ["verify", "p", "r"]):
        refused = headroom(tmp_path, *arguments, "-o", "x.pdf", check=False)
        assert refused.returncode == 2 and ".html" in refused.stderr


# --- stretches ---

def test_a_stretch_is_what_why_says_of_it(tmp_path):
    stretch = ("--from", "3s", "--to", "8s")
    for name in ("batch", "input"):
        headroom(tmp_path, "report", RECORDINGS[name], *stretch, "-o", "s.html")
        page = (tmp_path / "s.html").read_text("utf-8")
        is_whole(page)
        why = json.loads(headroom(tmp_path, "why", RECORDINGS[name], *stretch, "--json").stdout)
        words = words_of(page)
        assert why["headline"] in words and "from 3.0 s to 8.0 s of" in words
        assert f"headroom why {RECORDINGS[name]} --full --from 3s --to 8s" in words
        assert all(finding["title"] in words for finding in why["findings"])
    headroom(tmp_path, "report", RECORDINGS["batch"], *stretch, "-o", "s.md")
    assert "from 3.0 s to 8.0 s of" in (tmp_path / "s.md").read_text("utf-8")
    none = headroom(tmp_path, "report", RECORDINGS["batch"], "--from", "9h", check=False)
    assert none.returncode == 2 and "leave no time" in none.stderr


def test_a_stretch_of_a_batch_has_the_tasks_that_ran_in_it(tmp_path):
    headroom(tmp_path, "report", RECORDINGS["batch"], "-o", "all.md")
    runs = re.findall(r"^\| ([\w-]+) \| [\d, -]+ \| (\w+) \| ([\d:.]+(?: s| ms)?|0 ns) \|", (tmp_path / "all.md").read_text("utf-8"), re.MULTILINE)
    assert len(runs) > 3
    headroom(tmp_path, "report", RECORDINGS["batch"], "--to", "1s", "-o", "first.md")
    first = (tmp_path / "first.md").read_text("utf-8")
    shown = [name for name, _, _ in runs if f"| {name} |" in first]
    assert shown and len(shown) < len(runs), "those that began later are not in it"


# --- in a browser ---

OPENED = dict.fromkeys(WIDTHS, True)


@in_a_browser
def test_a_browser_finds_nothing_wrong_with_a_study(tmp_path):
    study_files(tmp_path)
    assert problems(tmp_path, "study.html", WIDTHS) == []
    assert problems(tmp_path, "study.html", OPENED, "--blink-settings=preferredColorScheme=0") == []


@in_a_browser
def test_a_browser_finds_nothing_wrong_with_a_comparison(pair):
    comparison(pair)
    assert problems(pair, "c.html", OPENED) == []
    assert problems(pair, "c.html", OPENED, "--blink-settings=preferredColorScheme=0") == []


@in_a_browser
def test_a_study_is_drawn(tmp_path):
    study_files(tmp_path)
    with served(tmp_path) as origin:
        browse(tmp_path, f"{origin}/study.html", "--window-size=900,3000", f"--screenshot={tmp_path}/shot.png")
    assert (tmp_path / "shot.png").stat().st_size > 30_000, "an empty page takes less"
