# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`."""

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
