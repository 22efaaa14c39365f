# SPDX-License-Identifier: Apache-2.0
"""On the emulated device with an engine that finds whole pixels, on a real GPU with its own engine."""

import ctypes
import os

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types

EMULATED = "PENSTOCK_OPTICAL_FLOW" in os.environ
# Motion of the content in pixels per frame (right, down).
MOVES = ((0, 0), (3, -2), (-1, 4))


def texture(height, width, channels=3, seed=3):
    """Blobs of all sizes, so that every position is unique."""
    noise = np.fft.fft2(np.random.default_rng(seed).normal(size=(height, width, channels)), axes=(0, 1))
    squares = (np.fft.fftfreq(height)[:, None] ** 2 + np.fft.fftfreq(width) ** 2)[..., None]
    x = sum(s * np.fft.ifft2(noise * np.exp(-2 * (np.pi * s) ** 2 * squares), axes=(0, 1)).real for s in (2, 4, 8))
    return np.clip(128 + 45 * x / x.std(), 0, 255).astype("u1")


def moving(height, width, channels=3, moves=MOVES, seed=3):
    """A sequence of len(moves) + 1 frames."""
    whole = texture(height + 64, width + 64, channels, seed)
    places = 32 - np.cumsum([(0, 0), *moves], axis=0)
    return np.stack([whole[y : y + height, x : x + width] for x, y in places])


def flow(samples, hints=None, **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        inputs = [fn.external_source(lambda: samples, layout="FHWC", device="gpu")]
        if hints is not None:
            inputs.append(fn.external_source(lambda: hints, layout="FHWC", device="gpu"))
        return fn.optical_flow(*inputs, **kwargs)

    p = pipe()
    out = p.run()[0].as_cpu()
    assert out.layout() == "FHWC"
    return [np.array(out.at(i)) for i in range(len(samples))]


def check(got, moves=MOVES, grid=4, share=0.9):
    """Checks that vectors point to the content's position in the earlier frame: the negative motion."""
    edge = 12 // grid
    assert got.dtype == np.float32
    assert len(got) == len(moves)
    for vectors, move in zip(got, moves):
        inner = vectors[edge:-edge, edge:-edge]
        assert (np.abs(inner + move).max(axis=-1) < 0.5).mean() > share
        assert np.array_equal(vectors * 32, np.round(vectors * 32))


@pytest.mark.parametrize("grid", (1, 2, 4))
def test_a_translation_gives_that_flow(grid):
    (got,) = flow([moving(58, 77)], output_grid=grid)
    assert got.shape == (3, -(-58 // grid), -(-77 // grid), 2)
    check(got, grid=grid)


@pytest.mark.parametrize("preset", (0.0, 0.5, 1.0))
def test_presets(preset):
    check(flow([moving(64, 96)], preset=preset)[0], share=0.8)


def test_a_ragged_batch_of_sequences():
    samples = [moving(64, 96), moving(48, 50, moves=MOVES[:2]), moving(64, 96, seed=9, moves=MOVES[1:])]
    got = flow([*samples, samples[0][:1], samples[0]])
    for vectors, moves in zip(got, (MOVES, MOVES[:2], MOVES[1:])):
        check(vectors, moves)
    assert got[3].shape == (0, 16, 24, 2)
    np.testing.assert_array_equal(got[4], got[0])


def test_more_sizes_than_engines_are_kept():
    samples = [moving(48, 44 + 2 * i, moves=MOVES[1:2]) for i in range(18)]
    for vectors in flow(samples, preset=1.0):
        check(vectors, MOVES[1:2], share=0.8)


def test_colours():
    frames = moving(64, 96)
    (rgb,) = flow([frames])
    np.testing.assert_array_equal(flow([frames[..., ::-1].copy()], image_type=types.BGR)[0], rgb)
    (gray,) = flow([moving(64, 96, 1)], image_type=types.GRAY)
    check(gray)


@pytest.mark.parametrize("hint_grid, grid", ((1, 1), (2, 2), (4, 4), (8, 4)))
def test_external_hints(hint_grid, grid):
    frames = moving(64, 96)
    hints = np.zeros((3, 64 // hint_grid, 96 // hint_grid, 2), "f4") - np.array(MOVES, "f4")[:, None, None]
    (got,) = flow([frames], [hints], enable_external_hints=True, hint_grid=hint_grid, output_grid=grid)
    check(got, grid=grid)
    if EMULATED:  # the emulated engine always follows hints
        (got,) = flow(
            [frames], [hints + np.float32([0, 2])], enable_external_hints=True, hint_grid=hint_grid, output_grid=grid
        )
        check(got, np.array(MOVES) - [0, 2], grid)


def test_hints_are_ignored_unless_they_are_enabled():
    frames = moving(64, 96)
    (got,) = flow([frames], [np.full((3, 16, 24, 2), 5, "f4")])
    np.testing.assert_array_equal(got, flow([frames])[0])


def emulator():
    lib = ctypes.CDLL(os.environ["PENSTOCK_OPTICAL_FLOW"])
    lib.emulated_flow_forgot.restype = ctypes.c_char_p
    return lib


@pytest.mark.skipif(not EMULATED, reason="the emulated engine counts")
def test_temporal_hints_are_of_the_same_sequence_only():
    samples = [moving(48, 64), moving(48, 64, seed=4)]
    emulator().emulated_flow_forgot()
    flow(samples, enable_temporal_hints=True)
    assert emulator().emulated_flow_forgot().decode().startswith("100100")
    flow(samples)
    assert set(emulator().emulated_flow_forgot().decode()) == {"1"}


@pytest.mark.skipif(not EMULATED, reason="the emulated engine counts")
def test_all_is_freed():
    @pipeline_def(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        return fn.optical_flow(types.Constant(moving(48, 64), layout="FHWC", device="gpu"), preset=1.0)

    before = emulator().emulated_flow_live()
    p = pipe()
    p.run()
    assert emulator().emulated_flow_live() > before
    p.close()
    assert emulator().emulated_flow_live() == before


@pytest.mark.skipif(not EMULATED, reason="the engine is there")
@pytest.mark.parametrize(
    "variable, value, text",
    [
        (
            "PENSTOCK_OPTICAL_FLOW",
            "/nowhere.so",
            "optical flow engine was not found.*NVIDIA_DRIVER_CAP",
        ),
        ("PENSTOCK_EMULATED_FLOW", "0", "Emulated device: this GPU's optical flow engine is not supported"),
    ],
)
def test_a_missing_engine_is_refused_when_the_pipeline_is_built(monkeypatch, variable, value, text):
    @pipeline_def(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        return fn.optical_flow(types.Constant(moving(48, 64), layout="FHWC", device="gpu"))

    monkeypatch.setenv(variable, value)
    with pytest.raises(RuntimeError, match=f"(?s)fn.optical_flow.*{text}"):
        pipe().build()


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"preset": 1.5}, r"preset=1.5 is not in \[0, 1\]"),
        ({"output_grid": 8}, "output_grid=8 is not supported; supported: 1, 2, 4"),
        ({"output_format": 3}, "output_grid=3 is not supported"),
        ({"output_format": 4, "output_grid": 4}, "give `output_grid` only"),
        ({"hint_grid": 16}, "hint_grid=16 is not supported; supported: 1, 2, 4, 8"),
        ({"enable_external_hints": True, "hint_grid": 2}, "hint_grid=2 is less than output_grid=4"),
        ({"image_type": types.YCbCr}, "image_type=YCbCr is not supported; supported: RGB, BGR, GRAY"),
        ({"enable_external_hints": True}, "enable_external_hints=True requires the hints as input 1"),
        ({"device": "cpu"}, "device='cpu' can't be used"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*output_format")
def test_wrong_arguments(kwargs, text):
    @pipeline_def(batch_size=1, device_id=0)
    def pipe():
        return fn.optical_flow(types.Constant(moving(48, 64), layout="FHWC", device="gpu"), **kwargs)

    with pytest.raises(ValueError, match=text):
        pipe()


@pytest.mark.parametrize(
    "sample, hints, text",
    [
        (np.zeros((2, 48, 64, 3), "f4"), None, "input type float32 is not supported"),
        (np.zeros((2, 48, 64, 1), "u1"), None, r"RGB frames have 3 channels; got shape \[2, 48, 64, 1\]"),
        (np.zeros((0, 48, 64, 3), "u1"), None, "the sequence has no frames"),
        (np.zeros((2, 16, 64, 3), "u1"), None, "frames of 16 x 64 pixels .* are not supported"),
        (np.zeros((2, 48, 64, 3), "u1"), np.zeros((1, 12, 15, 2), "f4"), r"have the shape \[1, 12, 16, 2\]; got"),
        (np.zeros((2, 48, 64, 3), "u1"), np.zeros((1, 12, 16, 2), "u1"), "hints are sequences"),
    ],
)
def test_wrong_input(sample, hints, text):
    kwargs = {} if hints is None else {"enable_external_hints": True}
    with pytest.raises(PipelineError, match=text):
        flow([sample], None if hints is None else [hints], **kwargs)
