"""The paper's page in a real browser: nothing is fetched, no script fails, and nothing is cut off at the side."""

from __future__ import annotations

import io

from cim.codegen.schedule import SCHEMES
from cim.explore import figures, paper
from cim.explore.measure import run_all
from cim.explore.page import paper_page
from cim.explore.table1 import Row, make_layer


def test_the_page_in_a_browser(browser, tmp_path):
    layer = paper.layer_of(make_layer(Row(1, 1, 1, 128, 64, 128, 64, 3, 3)), "small")
    tasks = [paper._task("1", layer, 32, scheme, 32, paper.bus_runs((4, 32))) for scheme in SCHEMES]
    points = [p for made in run_all(tasks) for p in made]
    drawn = {
        "fig4": figures.figure4([paper.timeline("linear")]),
        "fig5": figures.figure5(points, ["1"]),
    }
    vectors = {}
    for name, figure in drawn.items():
        content = io.BytesIO()
        figure.savefig(content, format="svg")
        vectors[name] = content.getvalue().decode()
    path = tmp_path / "paper.html"
    path.write_bytes(paper_page(paper.Results(points, [], [], [], [], [], [], []), vectors))
    browser.get(path.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    width, seen = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert width <= seen
    assert browser.execute_script("return document.querySelectorAll('figure svg').length") == 2
    for drawing in browser.find_elements("css selector", "figure svg"):
        assert drawing.size["width"] > 300
    # Cycles of the five schemes and their bounds, for two buses.
    cells = browser.execute_script(
        "return [...document.querySelectorAll('details')[0].querySelectorAll('tr')].map(r => r.cells.length)"
    )
    assert cells == [3 + 2 * len(SCHEMES)] * 3
    assert browser.get_log("browser") == []
