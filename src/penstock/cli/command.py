# SPDX-License-Identifier: Apache-2.0
"""The command `penstock` (also `python -m penstock`)."""

from __future__ import annotations

import argparse
import json
import os
import sys

from . import doctor as doctor_report
from . import operators, triton


def main(arguments: list[str] | None = None) -> int:
    try:
        return _main(arguments)
    except BrokenPipeError:  # for example in `penstock ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _main(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="penstock",
        description="Tools for penstock, which is used from Python.",
    )
    parser.add_argument("--version", action="store_true", help="print the versions of penstock and its codecs")
    commands = parser.add_subparsers(dest="command", metavar="command")
    doctor = commands.add_parser(
        "doctor", help="report what this machine supports (CPU, GPU, codecs, libraries) and what is missing"
    )
    doctor.add_argument(
        "url", nargs="?", help="also test whether this bucket, folder or object is reachable, and how fast"
    )
    doctor.add_argument("--json", action="store_true", help="print a JSON object with version, parts and advice")
    ls = commands.add_parser("ls", help="list a folder of a bucket (s3://, gs://, az://), or one object")
    ls.add_argument("url")
    ls.add_argument("-r", "--recursive", action="store_true", help="list all objects below it")
    cp = commands.add_parser(
        "cp", help="copy from and to URLs or paths; a whole folder if the source ends with a slash"
    )
    cp.add_argument("source")
    cp.add_argument("target")
    ops = commands.add_parser("ops", help="list the operators by family, or describe one and its arguments")
    ops.add_argument("name", nargs="?", default="", help="an operator (resize), or part of names")
    bench = commands.add_parser("bench", help="measure how fast a pipeline is by itself, and what limits it")
    bench.add_argument("pipeline", help="MODULE:NAME or FILE.py:NAME of a @pipeline_def function or a Pipeline")
    bench.add_argument("--batch-size", type=int, help="replaces the definition's")
    bench.add_argument("--num-threads", type=int, help="replaces the definition's")
    bench.add_argument("--device-id", type=int, help="the GPU, replaces the definition's; -1: none")
    bench.add_argument(
        "--seconds", type=_seconds, default=10.0, help="duration of the measurement (default: %(default)g)"
    )
    bench.add_argument("--report", help="write an HTML report with images, the graph and the last batches to this file")
    top = commands.add_parser("top", help="show the speed and time shares of a running training, from its metrics")
    top.add_argument("target", metavar="PID|URL", help="a process that called penstock.metrics.serve(), or its URL")
    top.add_argument("--every", type=_seconds, default=1.0, help="seconds between updates (default: %(default)g)")
    top.add_argument("--times", type=int, help="number of updates (default: until Ctrl-C)")
    triton.add(commands)
    plugin = commands.add_parser("new-plugin", help="write a template package with an operator in C++ and CUDA")
    plugin.add_argument("name", help="the package's name, such as my-effects")
    plugin.add_argument("--folder", default=".", help="where to create the package's folder (default: here)")
    commands.add_parser("version", help="print the versions of penstock and its codecs")
    options = parser.parse_args(arguments)
    if options.command == "doctor":
        if options.json:
            print(json.dumps(doctor_report.examine_for_programs(options.url), indent=1))
        else:
            print(doctor_report.examine(options.url))
        return 0
    if options.command in ("ls", "cp"):
        return _by_url(options)
    if options.command == "bench":
        return _bench(options)
    if options.command == "triton":
        return triton.run(options)
    if options.command == "top":
        return _top(options)
    if options.command == "new-plugin":
        return _new_plugin(options)
    if options.command == "ops":
        text = operators.show(options.name)
        print(
            text
            or f"no operator has {options.name!r} in its name; `penstock ops` lists all."
            + operators.nearest(options.name)
        )
        return 0 if text else 2
    if options.version or options.command == "version":
        print(sys.modules["penstock"].__version__)
        print("\n".join(doctor_report.codec_versions()))
        return 0
    parser.print_help()
    return 0


def _seconds(text: str) -> float:
    """For argparse: a time above 0."""
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"takes seconds above 0; got {text}")
    return seconds


def _bench(options: argparse.Namespace) -> int:
    from ..core.errors import NothingFed, PipelineError
    from . import bench

    device = {} if options.device_id is None else {"device_id": None if options.device_id < 0 else options.device_id}
    given = {"batch_size": options.batch_size, "num_threads": options.num_threads}
    try:
        if options.report is not None and not os.path.isdir(os.path.dirname(options.report) or "."):
            raise bench.NotMeasured(f"there is no folder {os.path.dirname(options.report)!r} for the report")
        pipe = bench.load(options.pipeline, {k: v for k, v in given.items() if v is not None} | device)
        print(bench.measure(pipe, options.seconds))
        if options.report is not None:
            pipe.report(options.report, bench.next_batch(pipe))
        return 0
    except bench.NotMeasured as e:
        print(f"penstock bench: {e}", file=sys.stderr)
        return 2
    except (NothingFed, PipelineError) as e:  # name the line of the program; a traceback of penstock's adds nothing
        print(f"penstock bench: {e}", file=sys.stderr)
        return 1


def _top(options: argparse.Namespace) -> int:
    from . import top

    try:
        top.watch(options.target, options.every, options.times)
    except top.NotServed as e:
        print(f"penstock top: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _new_plugin(options: argparse.Namespace) -> int:
    from pathlib import Path

    from . import new_plugin

    try:
        print(new_plugin.report(new_plugin.create(options.name, Path(options.folder))))
        return 0
    except (new_plugin.Refused, OSError) as e:
        print(f"penstock new-plugin: {e}", file=sys.stderr)
        return 1


def _by_url(options: argparse.Namespace) -> int:
    from ..core import storage
    from . import urls

    try:
        if options.command == "ls":
            for line in urls.listed(options.url, options.recursive):
                print(line)
        else:
            n, size = urls.copy(options.source, options.target)
            print(f"{n} copied, {size / 1e6:,.1f} MB")
        return 0
    except BrokenPipeError:
        raise
    except (OSError, ImportError, ValueError) as e:
        text, name = getattr(e, "strerror", None) or str(e), getattr(e, "filename", None)
        if name is not None and storage.without_secrets(str(name)) not in text:
            text += f": {storage.without_secrets(str(name))}"
        if isinstance(e, IsADirectoryError):
            text += "; a slash at its end copies the whole folder"
        print(f"penstock {options.command}: {text}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
