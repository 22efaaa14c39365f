# SPDX-License-Identifier: Apache-2.0
"""`penstock triton`: creates models and backends for the Triton Inference Server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..plugin.triton import repository
from . import bench


def add(commands: Any) -> None:
    """The command's arguments."""
    triton = commands.add_parser("triton", help="serve pipelines with the Triton Inference Server")
    actions = triton.add_subparsers(dest="action", metavar="action", required=True)
    export = actions.add_parser("export", help="write a pipeline as a model into a repository")
    export.add_argument("pipeline", help="FILE.py, FILE.py:NAME or MODULE:NAME of a @pipeline_def function")
    export.add_argument("--repository", required=True, help="the folder of models; created if it does not exist")
    export.add_argument("--name", help="the model's name (default: that of the file, or NAME)")
    export.add_argument("--batch-size", type=int, help="maximum batch size, replaces the definition's")
    export.add_argument("--num-threads", type=int, help="replaces the definition's")
    export.add_argument(
        "--backend",
        choices=("python", "penstock"),
        default="python",
        help="penstock requires `penstock triton backend` on the server (default: %(default)s, which every server has)",
    )
    backend = actions.add_parser("backend", help='add the backends "penstock" and "dali" to a server')
    backend.add_argument("folder", help="the server's folder of backends, such as /opt/tritonserver/backends")


def run(options: argparse.Namespace) -> int:
    try:
        if options.action == "backend":
            for path in repository.install_backends(Path(options.folder)):
                print(path)
            return 0
        given = {"batch_size": options.batch_size, "num_threads": options.num_threads}
        pipe, name = _loaded(options.pipeline, {k: v for k, v in given.items() if v is not None})
        model = repository.export(pipe, Path(options.repository), options.name or name, options.backend)
        print((model / "config.pbtxt").read_text(), end="")
        return 0
    except (bench.NotMeasured, ValueError, OSError) as e:
        print(f"penstock triton: {e}", file=sys.stderr)
        return 2


def _loaded(place: str, given: dict[str, Any]) -> tuple[Any, str]:
    if not place.endswith(".py"):
        return bench.load(place, given), place.rpartition(":")[2]
    path = Path(place)
    if not path.exists():
        raise bench.NotMeasured(f"there is no file {place}")
    return repository.marked(repository.load_module(path))(**given), path.stem
