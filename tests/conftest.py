"""Shared test setup."""

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

# Compiling and JIT make first examples slow; a timed test would be a flaky one. Where nobody can look at a
# new finding at once, the examples are the same every time.
settings.register_profile(
    "cim",
    deadline=None,
    print_blob=True,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("cim")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-sources` writes into tests/asm/sources what the assembler says now; look at the difference."""
    parser.addoption(
        "--update-sources", action="store_true", help="rewrite expectations in tests/asm/sources"
    )


BROWSER_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--window-size=1200,900",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """Chromium without a screen, which keeps what its pages log."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in BROWSER_FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    yield made
    made.quit()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With CIM_FORBID_SKIPS=1 a skipped test fails the run: there, everything is installed."""
    if os.environ.get("CIM_FORBID_SKIPS") != "1" or hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
