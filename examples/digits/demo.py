"""The main job, end to end: an int8 network on small crossbars, every test image, four schemes.

    python examples/digits/demo.py

Everything is done with the command-line tools; this script only calls them and shows what they wrote. The
files stay in out/digits/.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from cim.asm import cli_as, cli_ld
from cim.codegen import cli as cli_cc
from cim.emulator import cli as cli_emu
from cim.emulator.network import onnx_session

HERE = Path(os.path.relpath(Path(__file__).parent))
MODEL = HERE / "digits_int8.onnx"
IMAGES = HERE / "test_images.npy"
MACHINE = ["--set", "core.crossbar=32x32"]
SCHEMES = ("sequential", "linear", "cyclic", "ring")
TOOLS = {
    "cim-cc": cli_cc.main,
    "cim-as": cli_as.main,
    "cim-ld": cli_ld.main,
    "cim-emu": cli_emu.main,
}

out = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def tool(name: str, *arguments: object) -> None:
    """Show a command as one would type it, and run it; its failure ends the demo with its exit code."""
    words = [str(argument) for argument in arguments]
    out.print(f"[bold]$ {name} {shlex.join(words)}[/bold]", soft_wrap=True)
    status = TOOLS[name](words)
    if status:
        sys.exit(status)


def title(text: str) -> None:
    out.print()
    out.rule(f"[bold]{text}", align="left")


def show_a_core(folder: Path) -> None:
    """A core in the middle of a chain, as the compiler wrote it."""
    path = sorted(folder.glob("*conv2*.core*.s"))[7]
    syntax = Syntax(path.read_text(), "gas", background_color="default", word_wrap=True)
    out.print(Panel(syntax, title=path.name, title_align="left"))


def by_hand(folder: Path) -> None:
    """What cim-cc did for one layer, with assembler and linker."""
    stem = next(folder.glob("*conv2*.data.s")).name.removesuffix(".data.s")
    sources = sorted(folder.glob(f"{stem}.*.s"))
    objects = [path.with_suffix(".o") for path in sources]
    tool("cim-as", sources[0], "-o", objects[0])
    out.print(f"  … and so for the other {len(sources) - 1} files")
    for source, target in zip(sources[1:], objects[1:], strict=True):
        if status := cli_as.main([str(source), "-o", str(target)]):
            sys.exit(status)
    out.print(f"[bold]$ cim-ld {folder}/{stem}.*.o -o {folder}/{stem} --print-memory-usage[/bold]")
    arguments = [*map(str, objects), "-o", str(folder / stem), "--print-memory-usage"]
    if status := cli_ld.main(arguments):
        sys.exit(status)


def same_bytes(assembly: Path, direct: Path) -> bool:
    """Whether the layer linked by hand is what cim-cc writes itself."""
    made = [*assembly.glob("*conv2*.bin"), *assembly.glob("*conv2*.cfg")]
    made = [path for path in made if ".weights." not in path.name]
    return bool(made) and all(
        path.read_bytes() == (direct / path.name).read_bytes() for path in made
    )


def onnxruntime_answers(images: np.ndarray) -> np.ndarray:
    """What onnxruntime says of each image, with the same model."""
    session = onnx_session(MODEL.read_bytes())
    (name,) = (value.name for value in session.get_inputs())
    return np.concatenate([session.run(None, {name: image[None]})[0] for image in images])


def accuracy(labels: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> None:
    right = int((ours.argmax(axis=1) == labels).sum())
    agree = int((ours.argmax(axis=1) == theirs.argmax(axis=1)).sum())
    equal = int((ours == theirs).all(axis=1).sum())
    out.print(f"right answers       {right} of {len(labels)} ({right / len(labels):.2%})")
    out.print(
        f"same as onnxruntime {agree} of {len(labels)} answers; {equal} with equal probabilities"
    )


def speedups(stats: dict[str, dict]) -> None:
    """Cycles an image by scheme, and each layer's speedup as a share of its limit P_V."""
    base = stats["sequential"]
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("cycles an image")
    for name in (*SCHEMES, "limit P_V"):
        table.add_column(name, justify="right")
    count = len(base["cycles_per_image"])
    limits = {layer: chain_length(values) for layer, values in base["layers"].items()}
    for layer in base["layers"]:
        cells = []
        for scheme in SCHEMES:
            cycles = stats[scheme]["layers"][layer]["cycles"]
            speedup = base["layers"][layer]["cycles"] / cycles
            cells.append(f"{cycles / count:,.0f} ({speedup:.2f}x)")
        table.add_row(layer, *cells, f"{limits[layer]}x")
    total = [
        f"{stats[s]['cycles'] / count:,.0f} ({base['cycles'] / stats[s]['cycles']:.2f}x)"
        for s in SCHEMES
    ]
    table.add_row("network", *total, "", style="bold")
    out.print(table)


def chain_length(stats: dict) -> int:
    """P_V of a layer under the sequential scheme: it has P_H * (P_V - 1) CALLs on P_H * P_V cores."""
    images = len(stats["cycles_per_image"])
    p_h = stats["cores"] - stats["instructions"]["call"] // images
    return stats["cores"] // p_h


def where_time_went(stats: dict[str, dict]) -> None:
    """Core time by cause, and traffic, by scheme."""
    causes = ("mvm", "gpeu", "load", "store", "call", "wait", "issue", "idle")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("share of core time")
    for name in SCHEMES:
        table.add_column(name, justify="right")
    for cause in causes:
        shares = []
        for scheme in SCHEMES:
            parts = stats[scheme]["core_cycles"]
            shares.append(f"{parts[cause] / sum(parts.values()):.1%}")
        table.add_row(cause if cause != "wait" else "wait (SEQ_NR)", *shares)
    table.add_section()
    count = len(stats["linear"]["cycles_per_image"])
    for kind in ("load", "store", "call"):
        cells = [f"{stats[s]['bytes'][kind] / count:,.0f}" for s in SCHEMES]
        table.add_row(f"bytes an image: {kind}", *cells)
    out.print(table)


def main() -> None:
    began = time.perf_counter()
    images = np.load(IMAGES)
    labels = np.load(HERE / "test_labels.npy")
    folder = Path("out/digits")
    title("1. Compile the quantized network to assembly")
    tool("cim-cc", MODEL, "-S", "-o", folder / "text", *MACHINE)
    title("2. One of the cores")
    show_a_core(folder / "text")
    title("3. Assemble and link a layer by hand")
    by_hand(folder / "text")
    stats = {}
    outputs = {}
    for number, scheme in enumerate(SCHEMES):
        if number == 0:
            title("4. Compile to images and run all test images, with each scheme")
        tool("cim-cc", MODEL, "-o", folder / scheme, "--sync", scheme, "-q", *MACHINE)
        result, figures = folder / f"{scheme}.npy", folder / f"{scheme}.json"
        tool(
            "cim-emu", folder / scheme / "network.json", "--input", IMAGES, "--output", result,
            "--stats", figures, "--quiet", *(["--check"] if scheme == "linear" else []),
        )  # fmt: skip
        stats[scheme] = json.loads(figures.read_text())
        outputs[scheme] = np.load(result)
    theirs = onnxruntime_answers(images)
    title("5. The answers")
    accuracy(labels, outputs["linear"], theirs)
    alike = all(np.array_equal(outputs["linear"], values) for values in outputs.values())
    out.print(f"all schemes give the same numbers: {'yes' if alike else 'NO'}")
    out.print("every layer of every image equals the NumPy reference bit for bit (--check): yes")
    equal = same_bytes(folder / "text", folder / "linear")
    out.print(f"linked by hand, conv2 has the bytes that cim-cc writes: {'yes' if equal else 'NO'}")
    title("6. Cycles and speedup")
    speedups(stats)
    title("7. Where the time went, and what crossed the bus")
    where_time_went(stats)
    if not (alike and equal):
        sys.exit(6)
    out.print(
        f"\n{len(images)} images, four schemes, {time.perf_counter() - began:.1f} s; all files are in {folder}/"
    )


if __name__ == "__main__":
    main()
