# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`."""

import re
import subprocess
import sys

import pytest

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
    assert "readers.coco" in capsys.readouterr().out


def test_version(capsys):
    for arguments in (["--version"], ["version"]):
        assert main(arguments) == 0
        version, *codecs = capsys.readouterr().out.splitlines()
        assert version[0].isdigit()
        names = ["libjpeg-turbo", "libpng", "libtiff", "libwebp", "OpenJPEG", "libsndfile", "zstd"]
        assert [line.split()[0] for line in codecs] == names
        assert all(re.fullmatch(r"\S+ \d+\.\d+(\.\d+)*", line) for line in codecs), codecs


def test_output_into_a_closed_pipe():
    """As of `penstock ops | head`."""
    command = [sys.executable, "-m", "penstock", "ops"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stdout.close()
        assert run.stderr.read() == "" and run.wait(60) == 0


PIPELINES = """
from penstock import fn, pipeline_def
import numpy as np

@pipeline_def(batch_size=4, num_threads=1)
def noise():
    return fn.flip(fn.random.uniform(range=[0, 1], shape=[8, 8, 3]))

@pipeline_def(batch_size=2, num_threads=1)
def ends():
    return fn.external_source(source=[np.zeros((2, 3))] * 3, cycle="raise")

@pipeline_def(batch_size=2, num_threads=1)
def of(root):
    return fn.readers.file(file_root=root)[0]

@pipeline_def
def any_size():
    return fn.random.uniform()

@pipeline_def(batch_size=2, num_threads=1)
def once():
    return fn.external_source(source=[np.zeros((2, 3))] * 3)

@pipeline_def(batch_size=2, num_threads=1)
def fed():
    return fn.external_source(name="x")

@pipeline_def(batch_size=2, num_threads=1)
def damaged():
    return fn.decoders.image(np.zeros(9, np.uint8))

made = noise()
number = 3
"""


@pytest.fixture
def pipelines(tmp_path, monkeypatch):
    (tmp_path / "of_bench.py").write_text(PIPELINES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("of_bench", None)


@pytest.mark.parametrize("name", ["of_bench:noise", "of_bench.py:noise", "of_bench:made", "of_bench.py:ends"])
def test_bench_runs_a_pipeline(pipelines, capsys, name):
    assert main(["bench", name, "--seconds", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "samples/s" in out and out.rstrip().splitlines()[-1].startswith("The ")


def test_bench_writes_a_page(pipelines, tmp_path):
    page = tmp_path / "page.html"
    assert main(["bench", "of_bench:noise", "--seconds", "0.05", "--report", str(page)]) == 0
    assert "Time of the operators" in page.read_text() and "Outputs" in page.read_text()


def test_bench_changes_the_definition(pipelines, capsys):
    assert main(["bench", "of_bench:noise", "--seconds", "0.05", "--batch-size", "16", "--device-id", "-1"]) == 0
    samples, batches = re.search(r"(\d+) samples in (\d+) batches", capsys.readouterr().out).groups()
    assert int(samples) == 16 * int(batches)


@pytest.mark.parametrize(
    "name, told",
    [
        ("of_bench", "is not MODULE:NAME"),
        ("of_bench:nois", "has no 'nois'. Did you mean 'noise'?"),
        ("of_bench:number", "neither a Pipeline nor a function that returns one; got 3"),
        ("no_such_module:x", "there is no module 'no_such_module'"),
        ("no_such_file.py:x", "there is no file no_such_file.py"),
        ("of_bench:of", "takes arguments without a default (root); add a function without any"),
        ("of_bench:any_size", "'any_size' of of_bench has no batch_size; give one by --batch-size"),
        ("of_bench:once", "the source has ended, and does not begin again (see `cycle` of fn.external_source)"),
    ],
)
def test_bench_says_what_is_missing(pipelines, capsys, name, told):
    assert main(["bench", name]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, told", [("of_bench:damaged", 'of_bench.py", line'), ("of_bench:fed", "no data was fed to the input 'x'")]
)
def test_bench_shows_errors_of_pipelines_without_a_traceback(pipelines, capsys, name, told):
    assert main(["bench", name]) == 1
    text = capsys.readouterr().err
    assert text.startswith("penstock bench: ") and told in text and "Traceback" not in text


def test_bench_looks_for_the_folder_of_the_page_first(pipelines, capsys):
    assert main(["bench", "of_bench:noise", "--report", "none/page.html"]) == 2
    assert "there is no folder 'none' for the report" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "x"])
def test_bench_takes_some_time(pipelines, capsys, seconds):
    with pytest.raises(SystemExit):
        main(["bench", "of_bench:noise", "--seconds", seconds])
    assert "seconds" in capsys.readouterr().err


def test_bench_can_not_change_what_is_made(pipelines, capsys):
    assert main(["bench", "of_bench:made", "--num-threads", "2"]) == 2
    assert "is made already; num_threads can't be changed" in capsys.readouterr().err
