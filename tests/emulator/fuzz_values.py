"""The differential test of `test_values.py` for as long as one likes, with fresh seeds.

    python tests/emulator/fuzz_values.py 600        # seconds

Prints how many random programs gave the same memory or the same fault in engine and interpreter; stops with
the shrunk program at the first that did not.
"""

import secrets
import sys
import time
from pathlib import Path

from hypothesis import given, seed, settings

sys.path.insert(0, str(Path(__file__).parent))

from test_values import programs, same_as_interpreter

BATCH = 500


def batch(wrong: bool) -> None:
    """`BATCH` programs with a new seed."""

    @seed(secrets.randbits(64))
    @settings(max_examples=BATCH, deadline=None, database=None)
    @given(programs(wrong=wrong))
    def run(case):
        same_as_interpreter(case, wrong)

    run()


def main(seconds: float) -> None:
    batches = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        batch(wrong=False)
        batch(wrong=True)
        batches += 1
    count = batches * BATCH
    print(f"{count} valid and {count} possibly faulty programs: no difference")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
