"""`cim-isa`: looks up, encodes, decodes and exports the instruction set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from cim import console
from cim.diagnostics import Source, did_you_mean, error
from cim.isa.load import load_isa
from cim.isa.model import MODES, Isa


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-isa", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser(
        "cim-isa",
        "Look up, encode, decode and export the instruction set. CIM_SPEC names another isa.toml.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="all instructions, a line each")
    one = commands.add_parser(
        "explain", help="encoding, syntax, operation and timing of an instruction"
    )
    one.add_argument("mnemonic", metavar="MNEMONIC")
    one = commands.add_parser("encode", help="the word of an instruction")
    one.add_argument("text", metavar="'INSTRUCTION'", nargs="+")
    one.add_argument(
        "--mode", choices=MODES, default="i8", help="numeric mode (default: %(default)s)"
    )
    one = commands.add_parser("decode", help="the instruction of a word")
    one.add_argument("words", metavar="WORD", nargs="+", help="as in 0x0000010000180001")
    one.add_argument(
        "--mode", choices=MODES, default="i8", help="numeric mode (default: %(default)s)"
    )
    one = commands.add_parser(
        "export", help="manual, C header, SystemVerilog package or JSON, on stdout"
    )
    one.add_argument("format", choices=("md", "c", "sv", "json"))
    arguments = parser.parse_args(argv)
    actions: dict[str, Callable[[Isa, argparse.Namespace], None]] = {
        "list": _list,
        "explain": _explain,
        "encode": _encode,
        "decode": _decode,
        "export": _export,
    }
    actions[arguments.command](load_isa(), arguments)
    return 0


def _list(isa: Isa, arguments: argparse.Namespace) -> None:
    del arguments
    from cim.isa.printer import syntax_text

    for instruction in isa.instructions.values():
        first = instruction.prose.replace("\n", " ").split(". ")[0].removesuffix(".")
        print(f"{syntax_text(instruction):<36} {first}")


def _explain(isa: Isa, arguments: argparse.Namespace) -> None:
    from cim.isa.manual import explain

    name = arguments.mnemonic.lower()
    forms = isa.by_mnemonic.get(name) or isa.by_mnemonic.get(f"gpeu.{name}")
    if forms is None:
        raise error(
            f"unknown instruction '{arguments.mnemonic}'{did_you_mean(name, isa.by_mnemonic)}",
            where="cim-isa",
            notes=["cim-isa list shows them all"],
        )
    for number, form in enumerate(forms):
        if number:
            print("\n")
        for line in explain(isa, form):
            print(line.rstrip())


def _encode(isa: Isa, arguments: argparse.Namespace) -> None:
    import numpy as np

    from cim.asm.blocks import Statement
    from cim.asm.expansion import Lanes, Piece
    from cim.asm.expressions import ExpressionError, Value, evaluate
    from cim.asm.instructions import Context, encode_piece
    from cim.asm.syntax import LineError, Place, parse_whole_line
    from cim.asm.where import Where

    def no_names(name: str, place: Place) -> Value:
        raise ExpressionError(f"'{name}' is a symbol; give a number", place)

    text = " ".join(arguments.text)
    where = Where(Source("<argument>", text), 1)
    context = Context(
        isa, tuple(isa.extensions), arguments.mode, None, lambda e, _: evaluate(e, no_names)
    )
    none = np.zeros(1, dtype=np.int64)
    try:
        tree = parse_whole_line(text)
        if tree.op is None:
            raise error("there is no instruction", where="cim-isa")
        piece = Piece(Statement(where, tree), Lanes(1, {}), none, none, none)
        words, _ = encode_piece(piece, context)
    except (LineError, ExpressionError) as problem:
        raise error(problem.message, where.span(problem.place)) from None
    print(f"{int(words[0]):#018x}")


def _decode(isa: Isa, arguments: argparse.Namespace) -> None:
    import numpy as np

    from cim.isa.encoding import decode
    from cim.isa.printer import format_instruction

    values = []
    for text in arguments.words:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not 0 <= value < 2**64:
            raise error(
                f"'{text}' is no word: a number from 0 to {2**64 - 1:#x}, 0x for hexadecimal",
                where="cim-isa",
            )
        values.append(value)
    words = np.array(values, dtype=np.uint64)
    decoded = decode(isa, words)
    for index in range(len(words)):
        print(format_instruction(isa, decoded, index, arguments.mode))
    if (decoded.index < 0).any():
        raise error("not every word is an instruction", where="cim-isa")


def _export(isa: Isa, arguments: argparse.Namespace) -> None:
    from cim.isa.export import c_header, isa_json, sv_package
    from cim.isa.manual import manual

    makers = {"md": manual, "c": c_header, "sv": sv_package, "json": isa_json}
    sys.stdout.write(makers[arguments.format](isa))


if __name__ == "__main__":
    sys.exit(main())
