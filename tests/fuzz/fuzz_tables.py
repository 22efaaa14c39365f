# SPDX-License-Identifier: Apache-2.0
"""Runs readers.parquet and readers.mds on damaged files; part of `make fuzz`.

What can't be read has to be a ValueError, OSError or RuntimeError of the build, or a bad sample. Each input is a
function of its number: `--first N --inputs 1` repeats input N. They are read in a child process, so that a crash is
reported, too.
"""

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from fuzz_pipeline import mutate

COLUMNS = ("content", "label", "vector")
HANG_S = 60


def parquet_files() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 40
    table = pa.table(
        {
            "content": [{"bytes": b"%d" % i * (i % 7), "path": None} for i in range(n)],
            "label": pa.array(range(n), pa.int32()),
            "vector": pa.array([list(range(i % 5)) if i % 3 else None for i in range(n)], pa.list_(pa.float32())),
        }
    )
    plain = table.set_column(0, "content", pa.array([b"%d" % i * (i % 9) for i in range(n)]))
    found = []
    for t in (table, plain):
        for compression in ("snappy", "zstd", "gzip", "none"):
            for dictionary in (True, False):
                file = io.BytesIO()
                pq.write_table(t, file, row_group_size=7, compression=compression, use_dictionary=dictionary)
                found.append(file.getvalue())
    return found


def mds_folder() -> dict[str, bytes]:
    """An index and two shards, one of them compressed."""
    import struct

    shards, files = [], {}
    for k in range(2):
        samples = []
        for i in range(5):
            content, vector = b"%d" % i * i, np.arange(i, dtype="f4").tobytes()
            samples.append(struct.pack("<II", len(content), len(vector)) + content + struct.pack("<i", i) + vector)
        begin = 4 + 4 * (len(samples) + 1)
        ends = begin + np.cumsum([0, *map(len, samples)])
        raw = struct.pack("<I", len(samples)) + ends.astype("u4").tobytes() + b"".join(samples)
        about = {"format": "mds", "samples": len(samples), "compression": "gz" if k else None, "zip_data": None}
        about |= {"column_names": list(COLUMNS), "column_encodings": ["bytes", "int32", "bytes"]}
        about |= {"column_sizes": [None, 4, None], "raw_data": {"basename": f"{k}.mds", "bytes": len(raw)}}
        if k:
            pack = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
            files["1.mds.gz"] = pack.compress(raw) + pack.flush()
            about["zip_data"] = {"basename": "1.mds.gz", "bytes": len(files["1.mds.gz"])}
        else:
            files["0.mds"] = raw
        shards.append(about)
    return {**files, "index.json": json.dumps({"version": 2, "shards": shards}).encode()}


def child(first: int, inputs: int) -> None:
    """Says how far it came, and how many could be read."""
    from penstock import fn, pipeline_def

    tables, folder = parquet_files(), mds_folder()
    root = Path(tempfile.mkdtemp())

    @pipeline_def(batch_size=8, num_threads=2, device_id=None, on_error="skip", seed=1)
    def pipe(number):
        shuffle = (None, "windows", "global")[number // 2 % 3]
        if number % 2:
            return tuple(fn.readers.parquet(path=str(root / "a.parquet"), columns=COLUMNS, shuffle=shuffle))
        folders = {"path": str(root / "d"), "local": str(root / "local")}
        return tuple(fn.readers.mds(**folders, columns=COLUMNS, shuffle=shuffle))

    for number in range(first, first + inputs):
        rng = np.random.default_rng(number)
        shutil.rmtree(root, ignore_errors=True)
        (root / "d").mkdir(parents=True)
        if number % 2:
            data, other = (tables[k] for k in rng.integers(0, len(tables), 2))
            data = mutate(data, other, rng) if rng.integers(2) else mutate(data[::-1], other, rng)[::-1]
            (root / "a.parquet").write_bytes(data)
        else:
            bad = list(folder)[rng.integers(len(folder))]
            for name, content in folder.items():
                (root / "d" / name).write_bytes(mutate(content, content, rng) if name == bad else content)
        read = 0
        try:
            p = pipe(number)
            p.build()
            for _ in range(3):
                read += len(p.run()[0])
        except (RuntimeError, ValueError, OSError, StopIteration) as e:
            if "internal error" in str(e):
                raise
        print(number, read, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        child(a.first, a.inputs)
        return 0
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        print("without pyarrow: no damaged tables")
        return 0
    command = [sys.executable, __file__, "--child", "--first", str(a.first), "--inputs", str(a.inputs)]
    end, last, number, good = time.time() + a.seconds, time.time(), a.first - 1, 0
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        while process.poll() is None and time.time() < min(end, last + HANG_S):
            line = process.stdout.readline()
            if line:
                last, number, good = time.time(), int(line.split()[0]), good + (line.split()[1] != "0")
        ended, is_over = process.poll(), time.time() >= end
        process.kill()
        process.wait()
        print(f"tables: {number + 1 - a.first} inputs, something could be read of {good}")
        if ended or (ended is None and not is_over):
            errors.seek(0)
            print(f"{'crashed' if ended else 'hangs'} at input {number + 1}:\n{errors.read()[-4000:]}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
