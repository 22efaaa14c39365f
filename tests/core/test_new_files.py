# SPDX-License-Identifier: Apache-2.0
"""Files that appear only when they are complete."""

import os
import stat

import pytest

from penstock import fn, pipeline_def
from penstock.core.new_files import replacing


def test_readers_see_the_old_or_the_new_content(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["file"]


def test_what_fails_leaves_the_old_content(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), replacing(path) as file:
        file.write(b"new")
        raise KeyError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_links_and_modes_are_as_with_open(tmp_path):
    (tmp_path / "link").symlink_to("file")
    for name in ("link", "plain"):
        with replacing(tmp_path / name, "w", encoding="utf-8") as file:
            file.write("ü")
    with open(tmp_path / "opened", "w"):
        pass
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text(encoding="utf-8") == "ü"
    assert len({stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("file", "plain", "opened")}) == 1


@pytest.mark.parametrize("path", ["{}/none/file", "{}", "/dev/full"])
def test_errors_name_the_path(tmp_path, path):
    path = path.format(tmp_path)
    with pytest.raises(OSError) as caught, replacing(path) as file:
        file.write(b"new")
    assert caught.value.filename == path and not os.listdir(tmp_path)
    assert os.path.exists("/dev/full")


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    @pipeline_def(batch_size=2, num_threads=1, enable_checkpointing=True)
    def numbers():
        return fn.random.uniform()

    pipe = numbers()
    pipe.run()
    saved = pipe.checkpoint(tmp_path / "saved")
    pipe.run()
    monkeypatch.setattr(os, "replace", lambda old, new: os.rename(old, "/dev/full/x"))  # as on a full disk: fails
    with pytest.raises(OSError, match=str(tmp_path / "saved")):
        pipe.checkpoint(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes() == saved and os.listdir(tmp_path) == ["saved"]
