"""Report and trace in a real browser: Chromium without a screen, and Perfetto's own page."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from emulator_images import Core, call, load, make_image, mvm, store, wait

from cim.emulator import stats
from cim.emulator.perfetto import perfetto_trace
from cim.emulator.prepare import prepare
from cim.emulator.recording import Recording
from cim.emulator.report import html_report
from cim.emulator.report_data import gather
from cim.emulator.run import execute

PATIENCE_SECONDS = 60


def chain(cores=12, outputs=6):
    """Cores that hand a partial sum on."""
    made = []
    for v in range(cores):
        words = []
        for o in range(outputs):
            words += [load("ib", 0, 32, 0), mvm()]
            words += [wait(o + 1), load("pb", 0, 32, 256 * o)] if v else []
            words += [store(256 * o, "ob", 0, 32)]
            words += [call(v + 1)] if v + 1 < cores else []
        made.append(Core(words, np.ones((32, 32), "<i2"), name=f"adder{v}"))
    return make_image(made, settings=["bus.width_bytes=4"])


def eventually(holds):
    """Ask until it holds; pages take their time."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.2)
    return False


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    image = chain()
    prepared = prepare(image)
    result = execute(prepared)
    data = gather(prepared, image.config.machine, image.memory(), result.cycles, None)
    path = tmp_path_factory.mktemp("report") / "r.html"
    path.write_bytes(html_report(data, image.config.machine, stats.collect([result])))
    return path


@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_fits_its_window(browser, page, width):
    browser.set_window_size(width, 900)
    browser.get(f"file://{page}")
    inner, whole = browser.execute_script(
        "return [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert whole <= inner
    # Every chart has an area, and no text of it lies outside its drawing.
    outside = browser.execute_script("""
        return [...document.querySelectorAll('svg')].flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            if (frame.width < 100 || frame.height < 10) return ['no area: ' + svg.ariaLabel];
            return [...svg.querySelectorAll('text')].filter(text => {
                const box = text.getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 1
                    || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
            }).map(text => text.textContent);
        })""")
    assert outside == []
    assert browser.execute_script("return document.querySelectorAll('svg').length") == 5
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_perfetto_opens_a_trace(browser, tmp_path):
    image = chain()
    prepared = prepare(image)
    recording = Recording(prepared, image.config.machine)
    execute(prepared, sink=recording)
    trace = tmp_path / "t.json"
    trace.write_bytes(perfetto_trace(recording))
    port = free_port()
    viewer = Path(sys.executable).with_name("vizviewer")
    command = [str(viewer), "--server_only", "--port", str(port), str(trace)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        browser.set_window_size(1400, 1000)

        def text():
            return browser.find_element("tag name", "body").text

        def opened():
            try:
                browser.get(f"http://127.0.0.1:{port}")
            except Exception:  # noqa: BLE001  (the server is not there yet)
                return False
            return True

        assert eventually(opened)
        assert eventually(lambda: "1 bus cycle" in text())
        # Unfold the group of the cores: each core is a track by its name.
        browser.execute_script("""
            const titles = [...document.querySelectorAll('*')].filter(
                e => e.children.length === 0 && e.textContent.startsWith('cores (1 ns'));
            titles[0].click();""")
        assert eventually(lambda: "adder0" in text())
        assert "adder5" in text()
    finally:
        server.kill()
        server.wait()
