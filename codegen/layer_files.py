"""The files of compiled layers, several layers at a time in processes of their own where there is much to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, as_completed

# Its workers do not run the caller's own script again, as those of the standard library would.
from loky import ProcessPoolExecutor, cpu_count

from cim.asm.elf import write_object
from cim.asm.image import encode_config
from cim.codegen.compile_layer import CompiledLayer

# Assembling this many cores takes longer than starting workers.
CORES_WORTH_WORKERS = 1000

Files = dict[str, bytes]


def layer_files(compiled: CompiledLayer, stage: str) -> Files:
    """All files of a layer: `assembly`, `object` or `image`. Raises `CimError` where it does not fit."""
    program = compiled.program
    if stage == "assembly":
        return program.files
    reference = {program.reference[0]: program.reference[1]}
    if stage == "object":
        return {n: write_object(o) for n, o in compiled.objects().items()} | reference
    image = compiled.image()
    return {
        image.config.bin_name: image.content,
        image.path.name: encode_config(image.config),
    } | reference


def made_layers(
    layers: Sequence[CompiledLayer], stage: str, progress: Callable[[str], None]
) -> list[Files]:
    """The files of each layer in order; `progress` is called with a layer's name when it is made.

    Raises `CimError` as `layer_files` does, for the first layer in order that has one.
    """
    workers = min(cpu_count(), len(layers))
    cores = sum(layer.turn.cores for layer in layers)
    if workers < 2 or stage == "assembly" or cores < CORES_WORTH_WORKERS:
        made = []
        for layer in layers:
            made.append(layer_files(layer, stage))
            progress(layer.title)
        return made
    return _in_parallel(layers, stage, progress, workers)


def _in_parallel(
    layers: Sequence[CompiledLayer], stage: str, progress: Callable[[str], None], workers: int
) -> list[Files]:
    # The largest first, so that no worker is left alone with one at the end.
    order = sorted(range(len(layers)), key=lambda i: -layers[i].turn.cores)
    with ProcessPoolExecutor(max_workers=workers) as pool:
        futures = {pool.submit(layer_files, layers[index], stage): index for index in order}
        for future in as_completed(futures):
            progress(layers[futures[future]].title)
    by_layer = {index: future for future, index in futures.items()}
    return [_result(by_layer[index], layers[index], stage) for index in range(len(layers))]


def _result(future: Future[Files], layer: CompiledLayer, stage: str) -> Files:
    """What a worker has made of a layer; where it died, what we make of it."""
    try:
        return future.result()
    except BrokenExecutor:
        return layer_files(layer, stage)
