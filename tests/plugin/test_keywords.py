# SPDX-License-Identifier: Apache-2.0
"""examples/keywords.py: speech training from a NeMo manifest, with decreasing loss."""

import pytest

from modules import ROOT, load

pytest.importorskip("torch")

EXAMPLE = ROOT / "examples" / "keywords.py"


def test_the_loss_falls(tmp_path):
    keywords = load(EXAMPLE)
    losses = keywords.train(keywords.make_recordings(tmp_path, per_word=16), 4, 2)
    assert losses[0] > 0.5 and losses[-1] < losses[0] / 2


def test_the_features_of_an_epoch(tmp_path):
    """Each recording once, 80 mel bands, in batches of similar length."""
    keywords = load(EXAMPLE)
    manifest = keywords.make_recordings(tmp_path, per_word=8)
    pipe = keywords.features(manifest, batch_size=4, num_threads=2, seed=1)
    texts, spreads = [], []
    for _ in range(8):
        mel, text = pipe.run()
        texts += [bytes(text.at(i)).decode() for i in range(4)]
        frames = [s[1] for s in mel.shape()]
        assert {s[0] for s in mel.shape()} == {80}
        spreads.append(max(frames) / min(frames))
    assert sorted(texts) == sorted(8 * list(keywords.WORDS))
    assert sorted(spreads)[4] < 2
