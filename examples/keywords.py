# SPDX-License-Identifier: Apache-2.0
"""Speech training from a NeMo manifest: the input pipeline of Jasper and RNN-T (recordings to augmented log-mel
features in padded batches of similar length), and a small network that learns to recognise keywords.

    python examples/keywords.py [--epochs N] [--threads N] [--manifest FILE.json]

Without a manifest, it creates recordings: "words" of three tones each, of different speed, length and loudness, in
noise. A manifest has lines such as {"audio_filepath": "a.wav", "duration": 1.2, "text": "yes"}; each text is a class.
Requires PyTorch.
"""

import argparse
import json
import tempfile
import wave
from pathlib import Path

import numpy as np
import torch

from penstock import fn, pipeline_def
from penstock.plugin.pytorch import DALIRaggedIterator, LastBatchPolicy

RATE = 16000
WORDS = {"up": (300, 500, 800), "down": (800, 500, 300), "stay": (500, 500, 500), "turn": (300, 800, 300)}


def make_recordings(folder, per_word=32):
    """Writes WAV files of the words, and their manifest."""
    rng, lines = np.random.default_rng(0), []
    for word, tones in WORDS.items():
        for i in range(per_word):
            seconds = rng.uniform(0.1, 0.4)
            t = np.arange(int(RATE * seconds)) / RATE
            x = np.concatenate([np.sin(2 * np.pi * f * rng.uniform(0.95, 1.05) * t) for f in tones])
            x = rng.uniform(0.05, 0.5) * x + 0.01 * rng.standard_normal(len(x))
            path = folder / f"{word}{i}.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes((x * 32000).astype("<i2"))
            lines.append(json.dumps({"audio_filepath": str(path), "duration": len(x) / RATE, "text": word}))
    (folder / "train.json").write_text("\n".join(lines))
    return folder / "train.json"


@pipeline_def
def features(manifest):
    """Returns augmented log-mel features (80, time) of 25 ms windows every 10 ms, and the text of each recording."""
    sound, text = fn.readers.nemo_asr(
        manifest_filepaths=[str(manifest)],
        sample_rate=float(RATE),
        read_sample_rate=False,
        shuffle="global",
        batch_by_length=True,  # so that little of a padded batch is padding
        num_buckets=4,
        name="reader",
    )
    sound = fn.audio.speed_perturb(sound, speed=fn.random.uniform(values=[0.9, 1.0, 1.1]))
    sound = fn.preemphasis_filter(sound)
    spectrum = fn.spectrogram(sound, nfft=512, window_length=int(0.025 * RATE), window_step=int(0.01 * RATE))
    mel = fn.mel_filter_bank(spectrum, sample_rate=float(RATE), nfilter=80)
    mel = fn.normalize(fn.to_decibels(mel, cutoff_db=-80.0), axes=[1])
    mel = fn.audio.freq_mask(mel, max_width=10, num_masks=2)
    return fn.audio.time_mask(mel, max_width=20, num_masks=2, max_fraction=0.1), text


class Network(torch.nn.Module):
    """Convolutions along time, and the mean over the frames that are not padding."""

    def __init__(self, n_classes):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(80, 64, 11, padding=5),
            torch.nn.ReLU(),
            torch.nn.Conv1d(64, 64, 11, padding=5),
            torch.nn.ReLU(),
        )
        self.last = torch.nn.Linear(3 * 64, n_classes)

    def forward(self, x, lengths):
        frame = torch.arange(x.shape[2])[None]
        y, n = self.layers(x), lengths[:, None]
        # Beginning, middle and end of each recording, of which the order tells words apart.
        thirds = [(frame >= k * n // 3) & (frame < (k + 1) * n // 3) for k in range(3)]
        means = [(y * third[:, None]).sum(2) / third.sum(1, keepdim=True).clamp(min=1) for third in thirds]
        return self.last(torch.cat(means, 1))


def train(manifest, epochs, threads):
    """Returns the mean loss of each epoch."""
    torch.manual_seed(0)
    classes = sorted({json.loads(line)["text"] for line in Path(manifest).read_text().splitlines()})
    loader = DALIRaggedIterator(
        features(manifest, batch_size=16, num_threads=threads, seed=1),
        ["mel", "text"],
        reader_name="reader",
        output_types=["padded", "padded"],
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    network = Network(len(classes))
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    losses = []
    for epoch in range(epochs):
        total, right, count = 0.0, 0, 0
        for (batch,) in loader:
            texts = [bytes(t[:n].tolist()).decode() for t, n in zip(batch["text"], batch["text_lengths"])]
            labels = torch.tensor([classes.index(t) for t in texts])
            scores = network(batch["mel"], batch["mel_lengths"])
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item() * len(labels), count + len(labels)
            right += int((scores.argmax(1) == labels).sum())
        losses.append(total / count)
        print(f"epoch {epoch}: loss {losses[-1]:.3f}, {100 * right / count:.0f} % right, of {count} recordings")
    return losses


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--manifest")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return train(o.manifest or make_recordings(Path(folder)), o.epochs, o.threads)


if __name__ == "__main__":
    main()
