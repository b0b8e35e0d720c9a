"""The paper's page on a small part of it: figures, claims, files."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pytest

from cim.codegen.schedule import SCHEMES
from cim.emulator import layout
from cim.explore import cli, figures, paper
from cim.explore.claims import check_claims, compare_counts, memory_saved
from cim.explore.measure import run_all, speedups
from cim.explore.page import paper_page
from cim.explore.table1 import make_layer, read_counts, read_table


@pytest.fixture(scope="module")
def points():
    """Layers 1, 2 and 5 of Table I with fewer output vectors, at two crossbars and buses."""
    tasks = []
    for row in read_table():
        if row.layer in (1, 2, 5):
            small = dataclasses.replace(row, input_h=4, input_w=9)
            layer = paper.layer_of(make_layer(small), "small")
            for crossbar in (32, 64, 128):
                for scheme in SCHEMES:
                    runs = paper.bus_runs((4, 32))
                    tasks.append(paper._task(str(row.layer), layer, crossbar, scheme, 32, runs))
    return [point for made in run_all(tasks) for point in made]


def test_claims_say_what_the_points_say(points):
    counts = [c for c in read_counts() if c.layer in (1, 2, 5)]
    compared = compare_counts(points, counts)
    claims = {claim.claim: claim for claim in check_claims(points, [], compared)}
    # With 36 output vectors instead of 3136 the cores are the paper's, and nothing else is.
    assert all(row.differences[0] == 0 for row in compared)
    assert not claims["Table II: cores, values loaded and stored, CALLs"].holds
    best = max(
        s / p.p_v
        for p, s in speedups(points).items()
        if p.p_v > 1 and p.scheme in ("linear", "cyclic")
    )
    assert f"{best:.2%}" in claims["More than 99 % of the theoretical limit"].measured
    assert claims["More than 99 % of the theoretical limit"].holds == (best > 0.99)
    assert claims["At least 87.5 % of the synchronization memory is saved"].holds


def test_memory():
    assert memory_saved(1024) == (4096, 32768, 0.875)
    assert memory_saved(16)[2] > 0.99


def test_the_timelines_of_figure_4_have_every_output_of_every_core_once():
    for scheme in ("sequential", "linear", "cyclic", "ring"):
        timeline = paper.timeline(scheme)
        program = timeline.recording.prepared.program
        assert len(timeline.recording.prepared.configs) == 3
        for core in range(3):
            begin, end = timeline.recording.prepared.span(core)
            mvms = begin + np.flatnonzero(program["op"][begin:end] == layout.MVM)
            assert sorted(timeline.outputs[int(at)] for at in mvms) == list(range(12))


def test_files(points, tmp_path):
    compared = compare_counts(points, [c for c in read_counts() if c.layer in (1, 2, 5)])
    timelines = [paper.timeline(scheme) for scheme in ("linear", "ring")]
    claims = check_claims(points, [], compared)
    drawn = {
        "fig4": figures.figure4(timelines),
        "fig5": figures.figure5([p for p in points if p.crossbar != "128x128"], ["1", "2", "5"]),
        "fig6": figures.figure6(points),
        "fig7": figures.figure7([p for p in points if p.bus_bytes == 32], ["1", "2", "5"]),
    }
    texts = {}
    for name, figure in drawn.items():
        content = io.BytesIO()
        figure.savefig(content, format="svg")
        texts[name] = content.getvalue().decode()
    results = paper.Results(points, compared, [], [], [], timelines, claims, [])
    page = paper_page(results, texts).decode()
    assert page.count("<figure>") == 4
    central = [p for p in points if p.scheme == "central" and p.p_v > 1]
    told = page[page.index("synchronization by the memory") :]
    assert f"Of {len(central)} runs" in told
    assert all(f"{p.cycles:,}</td>" in told for p in central)
    assert "http" not in page.replace("http://www.w3.org", "")  # the names of SVG's own namespaces
    rows = list(csv.DictReader(io.StringIO(paper.points_csv(points).decode())))
    assert len(rows) == len(points)
    assert {row["scheme"] for row in rows} == set(SCHEMES)
    assert float(rows[0]["speedup"]) == 1


def test_without_matplotlib_the_pip_line_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert cli.main(["paper"]) == 1
    assert "pip install 'cim-toolchain[explore]'" in capsys.readouterr().err


def test_without_tensorflow_the_pip_line_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "keras", None)
    assert cli.main(["paper"]) == 1
    assert "pip install 'cim-toolchain[tensorflow]'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_is_refused_before_anything_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(paper, "run_paper", lambda **_: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    for folder, message in (
        ("file", "is a file; the results need a folder"),
        ("file/sub", "cannot be made or written: "),
        (
            "/proc/self/paper",
            "cannot be made or written: /proc/self: ",
        ),  # to root it looks writable
    ):
        assert cli.main(["paper", "-o", str(tmp_path / folder)]) == 1
        assert message in capsys.readouterr().err
