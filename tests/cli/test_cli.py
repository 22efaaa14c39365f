# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`."""

import subprocess
import sys

from penstock.cli import main
from penstock.core.op import REGISTRY


def test_ops_lists_all_operators(capsys):
    assert main(["ops"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert listed == {n for n in REGISTRY if not n.startswith("_")}


def test_ops_lists_some(capsys):
    assert main(["ops", "resize"]) == 0
    assert capsys.readouterr().out.startswith("fn.resize(")
    assert main(["ops", "random.unif"]) == 0
    out = capsys.readouterr().out
    assert "random.uniform" in out and "resize" not in out


def test_ops_shows_arguments(capsys):
    main(["ops", "fn.crop"])
    out = capsys.readouterr().out
    assert "crop_pos_x : float | DataNode, default 0.5" in out


def test_ops_without_a_match(capsys):
    assert main(["ops", "resise"]) == 2
    assert "no operator has 'resise' in its name" in capsys.readouterr().out


def test_ops_suggests_and_names_what_is_not_there(capsys):
    main(["ops", "resise"])
    assert "Did you mean 'resize'" in capsys.readouterr().out
    assert main(["ops", "readers"]) == 0
    assert "not there yet: " in (out := capsys.readouterr().out) and "readers.coco" in out


def test_version(capsys):
    for arguments in (["--version"], ["version"]):
        assert main(arguments) == 0
        assert capsys.readouterr().out[0].isdigit()


def test_output_into_a_closed_pipe():
    """As of `penstock ops | head`."""
    command = [sys.executable, "-m", "penstock", "ops"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.close()
        assert run.stderr.read() == "" and run.wait(60) == 0
