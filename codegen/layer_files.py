"""The files of compiled layers, several layers at a time in processes of their own where there is much to do.

A worker is `python -m cim.codegen.layer_files`: it takes a layer on its standard input and gives the files on its
standard output, until the input ends. (A pool of `multiprocessing` would run the caller's own script again.)
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

import cim
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
    workers = min(_processors(), len(layers))
    cores = sum(layer.mapping.cores for layer in layers)
    if workers < 2 or stage == "assembly" or cores < CORES_WORTH_WORKERS:
        made = []
        for layer in layers:
            made.append(layer_files(layer, stage))
            progress(layer.layer.name)
        return made
    return _in_parallel(layers, stage, progress, workers)


def _in_parallel(
    layers: Sequence[CompiledLayer], stage: str, progress: Callable[[str], None], workers: int
) -> list[Files]:
    waiting: SimpleQueue[int | None] = SimpleQueue()
    # The largest first, so that no worker is left alone with one at the end.
    for index in sorted(range(len(layers)), key=lambda i: -layers[i].mapping.cores):
        waiting.put(index)
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    threads = []
    for _ in range(workers):
        waiting.put(None)
        threads.append(Thread(target=_serve, args=(layers, stage, waiting, done), daemon=True))
        threads[-1].start()
    made: dict[int, Any] = {}
    while len(made) < len(layers):
        index, result = done.get()
        made[index] = result
        progress(layers[index].layer.name)
    for thread in threads:
        thread.join()
    for index in range(len(layers)):
        if isinstance(made[index], BaseException):
            raise made[index]
    return [made[index] for index in range(len(layers))]


def _serve(
    layers: Sequence[CompiledLayer], stage: str, waiting: SimpleQueue[int | None],
    done: SimpleQueue[tuple[int, Any]],
) -> None:  # fmt: skip
    """One worker from start to end. What it cannot do, because it died or never lived, is done here."""
    worker = _worker()
    while (index := waiting.get()) is not None:
        result = None if worker is None else _asked(worker, layers[index], stage)
        done.put((index, _result(layers[index], stage) if result is None else result))
    if worker is not None:
        with suppress(OSError):
            worker.communicate()  # closes its input, which ends it


def _worker() -> subprocess.Popen[bytes] | None:
    paths = [
        str(Path(cim.__file__).parents[1]),
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    try:
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=environment,
        )  # fmt: skip
    except OSError:
        return None


def _asked(worker: subprocess.Popen[bytes], layer: CompiledLayer, stage: str) -> Any:
    """What a worker makes of a layer; None where it does not answer."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        pickle.dump((layer, stage), worker.stdin)
        worker.stdin.flush()
        return pickle.load(worker.stdout)  # noqa: S301  (from our own process)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _result(layer: CompiledLayer, stage: str) -> Files | BaseException:
    try:
        return layer_files(layer, stage)
    except Exception as problem:  # noqa: BLE001  (raised again where all layers are done)
        return problem


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work(source: IO[bytes], target: IO[bytes]) -> None:
    while True:
        try:
            layer, stage = pickle.load(source)  # noqa: S301  (from our own parent)
        except EOFError:
            return
        pickle.dump(_result(layer, stage), target)
        target.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and with it our input
    _work(sys.stdin.buffer, sys.stdout.buffer)
