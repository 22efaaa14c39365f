# SPDX-License-Identifier: Apache-2.0
"""`python -m penstock.as_dali script.py arguments`, `python -m penstock.as_dali -m module arguments`."""

import os
import runpy
import sys

USAGE = """usage: python -m penstock.as_dali SCRIPT [ARGUMENT ...]
       python -m penstock.as_dali -m MODULE [ARGUMENT ...]
       python -m penstock.as_dali -c CODE [ARGUMENT ...]

Runs a Python program that was written for NVIDIA DALI on penstock."""


def main() -> None:
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if args else 2)
    if args[0] in ("-m", "-c"):
        if len(args) < 2:
            sys.exit(f"{args[0]} needs a value\n\n{USAGE}")
        sys.argv = [args[0], *args[2:]]
        if args[0] == "-m":
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
            return
        namespace = vars(sys.modules["__main__"])
        namespace.update(__spec__=None, __file__=None)
        exec(compile(args[1], "<string>", "exec"), namespace)
        return
    if args[0].startswith("-"):
        sys.exit(f"unknown option {args[0]}\n\n{USAGE}")
    if not os.path.exists(args[0]):
        sys.exit(f"python -m penstock.as_dali: there is no file {args[0]}")
    sys.argv = args
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(args[0]))
    runpy.run_path(args[0], run_name="__main__")


if __name__ == "__main__":
    main()
