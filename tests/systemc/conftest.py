"""The SystemC model, built once, for the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "emulator")]

from systemc_model import MissingTool, Model, build  # noqa: E402


@pytest.fixture(scope="session")
def model() -> Model:
    try:
        return Model(build())
    except MissingTool as missing:
        pytest.skip(str(missing))
