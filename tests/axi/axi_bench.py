"""Runs inside the simulator: has the AXI master of cocotbext-axi do accesses, and notes the bursts it asks for.

Reads `[[address, bytes], ...]` from the JSON file CIM_AXI_CASES and writes, to CIM_AXI_BURSTS, for every access
`[reads, writes]`, each the list of `[address, beats, bytes a beat]` seen on AR or AW.
"""

import json
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from cocotbext.axi import AxiBus, AxiMaster, AxiRam


def read_cases():
    return json.loads(Path(os.environ["CIM_AXI_CASES"]).read_text(encoding="utf-8"))


def write_bursts(bursts):
    Path(os.environ["CIM_AXI_BURSTS"]).write_text(json.dumps(bursts), encoding="utf-8")


async def watch(dut, channel, seen):
    """Note every burst whose address is taken on a channel, "ar" or "aw"."""

    def wire(name):
        return getattr(dut, channel + name).value

    while True:
        await RisingEdge(dut.clk)
        handshake = (wire("valid"), wire("ready"))
        if all(one.is_resolvable and int(one) for one in handshake):
            length, size = int(wire("len")) + 1, 1 << int(wire("size"))
            seen.append([int(wire("addr")), length, size])


@cocotb.test()
async def bursts_of_random_accesses(dut):
    cases = read_cases()
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    bus = AxiBus.from_entity(dut)
    ram = AxiRam(bus, dut.clk, dut.rst, size=2**16)
    master = AxiMaster(AxiBus.from_entity(dut), dut.clk, dut.rst)
    dut.rst.value = 1
    await Timer(20, "ns")
    dut.rst.value = 0
    await Timer(20, "ns")
    reads, writes = [], []
    cocotb.start_soon(watch(dut, "ar", reads))
    cocotb.start_soon(watch(dut, "aw", writes))
    result = []
    for address, size in cases:
        data = bytes((address + k) % 251 for k in range(size))
        await master.write(address, data)
        assert ram.read(address, size) == data
        assert (await master.read(address, size)).data == data
        result.append([list(reads), list(writes)])
        reads.clear()
        writes.clear()
    write_bursts(result)
