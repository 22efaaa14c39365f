# SPDX-License-Identifier: Apache-2.0
"""The guide's picture of a video is the output of its script, and its frames agree with NumPy."""

import re

import numpy as np

from modules import ROOT, load
from optional_packages import needs

pytestmark = needs("av")


def test_the_picture_is_up_to_date():
    tool = load(ROOT / "tools" / "video_picture.py")
    plain = lambda text: re.sub('base64,[^"]*', "", text)  # packed by zlib, of whatever version
    assert plain(tool.draw()) == plain((ROOT / "docs" / "images" / "video.svg").read_text())


def test_it_shows_the_frames_asked_for():
    tool = load(ROOT / "tools" / "video_picture.py")
    video = tool.penstock.video.open(tool.CLIP)
    expected = [[2, 4, 6, 8], [6, 7, 8, 9], np.floor(np.linspace(0, 11, 4) + 0.5).tolist(), video.key_frames.tolist()]
    assert [tool.frames_of(call, video[:]) for call in tool.CALLS] == expected
