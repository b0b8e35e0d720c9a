"""The files of compiled layers, several layers at a time in processes of their own where there is much to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, as_completed
from dataclasses import replace

# Its workers do not run the caller's own script again, as those of the standard library would.
from loky import ProcessPoolExecutor, cpu_count

from cim.asm.elf import write_object
from cim.asm.image import encode_config
from cim.codegen.compile_layer import CompiledLayer, image_of, objects_of
from cim.codegen.emit import Program

# Assembling this many cores takes longer than starting workers.
CORES_WORTH_WORKERS = 1000

Files = dict[str, bytes]


def program_files(program: Program, stage: str) -> Files:
    """The files of a program but for its reference: `assembly`, `object` or `image`.

    Raises `CimError` where it does not fit.
    """
    if stage == "assembly":
        return {name: data for name, data in program.files.items() if name != program.reference[0]}
    if stage == "object":
        return {name: write_object(made) for name, made in objects_of(program).items()}
    image = image_of(program)
    return {
        image.config.bin_name: image.content,
        image.path.name: encode_config(image.config),
    }


def made_layers(
    layers: Sequence[CompiledLayer], stage: str, progress: Callable[[str], None]
) -> list[Files]:
    """The files of each layer in order; `progress` is called with a layer's name when it is made.

    Raises `CimError` as `program_files` does, for the first layer in order that has one.
    """
    workers = min(cpu_count(), len(layers))
    cores = sum(layer.turn.cores for layer in layers)
    if workers < 2 or stage == "assembly" or cores < CORES_WORTH_WORKERS:
        made = []
        for layer in layers:
            made.append(program_files(layer.program, stage))
            progress(layer.title)
    else:
        made = _in_parallel(layers, stage, progress, workers)
    references = [dict([layer.program.reference]) for layer in layers]
    return [files | reference for files, reference in zip(made, references, strict=True)]


def _in_parallel(
    layers: Sequence[CompiledLayer], stage: str, progress: Callable[[str], None], workers: int
) -> list[Files]:
    # The largest first, so that no worker is left alone with one at the end.
    order = sorted(range(len(layers)), key=lambda i: -layers[i].turn.cores)
    # The reference, which all turns of a layer share, is as large as the layer: nothing to send for each of them.
    programs = [replace(layer.program, reference=("", b"")) for layer in layers]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        futures = {pool.submit(program_files, programs[index], stage): index for index in order}
        for future in as_completed(futures):
            progress(layers[futures[future]].title)
    by_layer = {index: future for future, index in futures.items()}
    return [_result(by_layer[index], programs[index], stage) for index in range(len(layers))]


def _result(future: Future[Files], program: Program, stage: str) -> Files:
    """What a worker has made of a program; where it died, what we make of it."""
    try:
        return future.result()
    except BrokenExecutor:
        return program_files(program, stage)
