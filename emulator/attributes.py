"""The compiled attributes of shared memory: loads that wait until what they read is valid (spec/timing.md).

Jitted like `engine.py`, and like it imported only through `cim.emulator.compiled`.
"""

# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

from cim.emulator.events import ADMIT, push
from cim.emulator.layout import ENTRY_BYTES, READERS_BITS
from cim.emulator.values import inlined, jitted


@jitted
def count_reads(attributes, size, begin, stop, me, core):
    """Count a read of all entries of a burst if they are valid; else have its initiator wait for one that is not.

    `size` is that of an entry in bytes.
    """
    first, last = begin // size, (stop - 1) // size
    for entry in range(first, last + 1):
        if attributes[entry] & ((1 << READERS_BITS) - 1) == 0:
            core.next_held = attributes[entry] >> READERS_BITS
            attributes[entry] = (me + 1) << READERS_BITS
            return False
    for entry in range(first, last + 1):
        attributes[entry] -= 1  # nobody waits for an entry that is valid
    return True


@inlined
def make_valid(s, begin, stop, readers, now):
    """Bytes of a store that counts arrive; who waits for them tries again in this cycle."""
    size = s.scalars[ENTRY_BYTES]
    for entry in range(begin // size, (stop - 1) // size + 1):
        waiting = s.attributes[entry] >> READERS_BITS
        s.attributes[entry] = readers
        while waiting > 0:
            me = waiting - 1
            waiting = s.cores[me].next_held
            push(s.heap, s.calendar, now, ADMIT, me)
