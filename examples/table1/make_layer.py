"""Make the layers of Table I of the paper as quantized ONNX models of one operator.

python make_layer.py --layer 5 -o layer5.onnx
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cim.explore.table1 import make_layer, read_table


def main() -> None:
    """Write one layer's model."""
    rows = {row.layer: row for row in read_table()}
    parser = argparse.ArgumentParser(description="Make a layer of Table I as an ONNX model.")
    parser.add_argument("--layer", type=int, required=True, choices=sorted(rows), help="its number")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the ONNX file to write")
    arguments = parser.parse_args()
    content = make_layer(rows[arguments.layer]).SerializeToString(deterministic=True)
    try:
        arguments.output.write_bytes(content)
    except OSError as problem:
        sys.exit(f"{arguments.output}: error: cannot write: {problem.strerror}")


if __name__ == "__main__":
    main()
