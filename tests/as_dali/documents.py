# SPDX-License-Identifier: Apache-2.0
"""Runs the code of documents about DALI as it stands in them, cell by cell: `python -m penstock.as_dali documents.py
FILE FOLDER [gpu]`, with two JAX devices. What cells print is compared with what the document says they print.

Changes are listed below: paths of images, names that newer JAX releases have changed, drawing, and, without GPUs, the
device. The documents are not part of this repository; `PENSTOCK_DOCUMENTS` is their folder."""

import io
import re
import sys
import types
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

FILE, FOLDER = Path(sys.argv[1]), sys.argv[2]
GPU = sys.argv[3:] == ["gpu"]

CHANGES = [
    (r'"\.\./\.\./data/images"', repr(FOLDER)),
    (r"os\.path\.join\(data_root_dir, 'db', 'single', 'jpeg'\)", repr(FOLDER)),
    (r"os\.environ\['DALI_EXTRA_PATH'\]", "''"),
    (r"\.device\(\)", ".device"),  # now a property of JAX arrays
    (r"(\w+)\.device_buffers\[(\d)\]", r"\1.addressable_shards[\2].data"),  # removed from JAX
    (r"%%timeit", ""),  # of notebooks; the cell runs once
]
WITHOUT_GPU = [(r'device="mixed"', 'device="cpu"'), (r"\.gpu\(\)", ""), (r"device_id=1", "device_id=0")]
# Equivalent forms of printed text.
SAME = [
    (r"jaxlib\.[\w.]*ArrayImpl", "ArrayImpl"),
    (r"nvidia\.dali\.", "penstock."),
    (r"NamedSharding\(mesh=Mesh\('batch': 2.*spec=P(artitionSpec)?\('batch',\).*\)", "sharding of 'batch' over 2"),
    (r"TFRT_CPU_(\d)", r"cpu:\1"),
    (r"(Cuda|Cpu)Device\(", lambda m: f"{m[1].lower()}("),
]
SAME_WITHOUT_GPU = [(r"cuda", "cpu")]
# Without a second GPU.
NOT_COMPARED = {("001", 19)} if not GPU else set()
# For the document whose lines have lost their indentation: lines of code and of its output, by cell.
LINES = {
    "001": [
        *((1, 0), (10, 0), (6, 0), (1, 0), (3, 0), (1, 0), (6, 5), (3, 0), (3, 1), (4, 1), (7, 0), (4, 22), (1, 0)),
        *((5, 4), (10, 0), (1, 0), (1, 1), (8, 0), (3, 1), (7, 0), (3, 2), (11, 0), (13, 0), (5, 1), (13, 0), (17, 0)),
        *((1, 0), (5, 3), (1, 0), (8, 2), (1, 0), (4, 0), (1, 0), (2, 0), (1, 0), (2, 0), (1, 1), (9, 1), (5, 1)),
        (3, 2),
    ]
}  # fmt: skip


def indented(lines: list[str]) -> list[str]:
    """Indents one more level after a colon, until a `return`."""
    depth, out = 0, []
    for line in lines:
        out.append("    " * depth + line)
        if line.endswith(":"):
            depth += 1
        elif line.startswith("return "):
            depth = 0
    return out


def cells() -> list[tuple[str, list[str]]]:
    """Code and printed lines of each cell."""
    lines = FILE.read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if re.fullmatch(r"\[\d+\]:", line)]
    counts = LINES.get(FILE.name[:3])
    if counts is not None:
        assert len(counts) == len(starts)
        found = zip(starts, counts)
        return [
            ("\n".join(indented(lines[i + 1 : i + 1 + n])), lines[i + 1 + n : i + 1 + n + p]) for i, (n, p) in found
        ]
    if not starts:  # a single program within prose
        begin = next(i for i, line in enumerate(lines) if line.startswith("from nvidia"))
        end = max(i for i, line in enumerate(lines) if line.startswith("    backward("))
        return [("\n".join(lines[begin : end + 1]), [])]
    out = []
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        body = []
        for line in lines[start + 1 : end]:
            if re.search("[\u3000-\u9fff]", line) or line.startswith(("../", "NamedSharding(", "  GPU")):
                break
            body.append(line)
        printed = [line for line in lines[start + 1 + len(body) : end] if line.startswith("NamedSharding(")]
        out.append(("\n".join(body), printed))
    return out


def changed(text: str, changes: list) -> str:
    for pattern, replacement in changes:
        text = re.sub(pattern, replacement, text)
    return text


def without_drawing() -> None:
    """Replaces Matplotlib by a check that images are drawn."""

    def imshow(image):
        assert image.ndim == 3 and image.shape[2] == 3 and image.dtype == "uint8" and int(image.max()) > 50

    plot = types.ModuleType("matplotlib.pyplot")
    plot.imshow, plot.figure, plot.subplot, plot.axis = imshow, *(lambda *a, **k: None for _ in range(3))
    grid = types.ModuleType("matplotlib.gridspec")
    grid.GridSpec = lambda rows, columns: range(rows * columns)
    package = types.ModuleType("matplotlib")
    package.pyplot, package.gridspec = plot, grid
    sys.modules.update({"matplotlib": package, "matplotlib.pyplot": plot, "matplotlib.gridspec": grid})


def in_order(line: str) -> str:
    """Sorts printed sets."""
    return re.sub(r"\{([^{}:]*)\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", line)


def main() -> None:
    if find_spec("matplotlib"):
        import matplotlib

        matplotlib.use("Agg")
    else:
        without_drawing()
    names: dict = {"__name__": "__main__"}
    n_printed = 0
    found = cells()
    for number, (code, printed) in enumerate(found, 1):
        if "visualize_array_sharding" in code:
            if not find_spec("rich"):
                continue  # which JAX draws with
            printed = []  # a drawing
        code = changed(code, CHANGES if GPU else CHANGES + WITHOUT_GPU)
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(code, f"{FILE.name}, cell {number}", "exec"), names)
        got = [line for line in out.getvalue().splitlines() if line.strip()]
        compared = [] if (FILE.name[:3], number) in NOT_COMPARED else printed
        for line, want in zip(got, compared):
            here, there = (in_order(changed(x, SAME if GPU else SAME + SAME_WITHOUT_GPU)) for x in (line, want))
            assert here == there, f"cell {number} printed {line!r}, the document says {want!r}"
            n_printed += 1
        assert not printed or len(got) == len(printed), f"cell {number} printed {got}, the document says {printed}"
    if "train_data" in names:
        data = names["data"][0]
        assert len(names["train_data"]) == 2 and data["data"].shape == (16, 3, 224, 224)
        assert (
            data["data"].is_cuda == GPU
            and str(data["data"].dtype) == "torch.float32"
            and data["label"].shape == (16, 1)
        )
    print(f"{len(found)} cells, {n_printed} printed lines as documented")


if __name__ == "__main__":
    main()
