# SPDX-License-Identifier: Apache-2.0
"""The comparison with DALI detects artificial differences between two results. DALI is not needed."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from conformance import grid, report, test_files_and_facts, test_made, test_regions
from conformance.oracle import Bound, Problem, Result, Tally, compare, is_among
from conformance.test_operators import DECLARED, RECIPES
from deviations import Either
from harness import Case, Column
from operators.geometry.test_resize import reference, references
from penstock import types
from penstock.core.op import REGISTRY, PerFrame, PerSample, snake_case
from penstock.core.source import Source

X = np.arange(24, dtype="u1").reshape(2, 4, 3)
F = np.linspace(0, 1, 24, dtype="f4").reshape(2, 4, 3)


def changed(x, by):
    out = x.copy()
    out.flat[5] += by
    return out


def result(*samples, layout="HWC"):
    return Result([list(samples)], [layout])


@pytest.mark.parametrize(
    "theirs, ours, bound, kind",
    [
        (result(X), result(changed(X, 1)), Bound(0), "values"),
        (result(X), result(changed(X, 2)), Bound(1), "values"),
        (result(F), result(changed(F, 1e-4)), Bound(0, 16), "values"),
        (result(F), result(changed(F, np.nan)), Bound(0, 16), "values"),
        (result(changed(F, np.inf)), result(F), Bound(0, 16), "values"),
        (result(X), result(X.astype("u2")), Bound(1), "form"),
        (result(X), result(X[:, :3]), Bound(1), "form"),
        (result(X), result(X, layout="CHW"), Bound(1), "form"),
        (result(X), result(X, X), Bound(1), "form"),
        (result(X), Result([[X], [X]], ["HWC", "HWC"]), Bound(1), "form"),
        (Result(error="no"), result(X), Bound(1), "accepts"),
        (result(X), Result(error="no"), Bound(1), "refuses"),
    ],
)
def test_differences_are_seen(theirs, ours, bound, kind):
    problem = compare(theirs, ours, bound, Tally())
    assert problem and problem.kind == kind


@pytest.mark.parametrize(
    "theirs, ours, bound",
    [
        (result(X), result(X), Bound(0)),
        (result(X), result(changed(X, 1)), Bound(1)),
        (result(F), result(changed(F, 1e-6)), Bound(0, 16)),
        (result(changed(F, np.nan)), result(changed(F, np.nan)), Bound(0)),
        (result(X[:0]), result(X[:0]), Bound(0)),
        (Result(error="a"), Result(error="b"), Bound(0)),
    ],
)
def test_agreement_passes(theirs, ours, bound):
    assert not compare(theirs, ours, bound, Tally())


def test_a_wrong_form_needs_an_excuse_of_its_own():
    tally = Tally()
    assert not tally.excuse(Problem("shape", "form"), {"size": "on purpose"}, "uint8-size=3")
    assert not tally.excuse(Problem("off", "values"), {"size": "on purpose"}, "uint8-mode=3")
    assert not tally.excuse(Problem("raises", "refuses"), {"size": "on purpose"}, "uint8-size=3")
    assert not tally.deliberate
    assert tally.excuse(Problem("off", "values", 0.5), {"size": "on purpose"}, "uint8-size=3")
    assert tally.excuse(Problem("shape", "form"), {"form:size": "on purpose"}, "uint8-size=3")
    assert tally.excuse(Problem("raises", "accepts"), {"accepts:size": "on purpose"}, "uint8-size=3")
    assert not tally.excuse(Problem("off", "values"), {"accepts:size": "on purpose"}, "uint8-size=3")
    assert tally.deliberate == {"on purpose": [0.5, None, None]}


NEAREST, GAUSSIAN = {"interp_type": types.INTERP_NN}, {"interp_type": types.INTERP_GAUSSIAN}


@pytest.mark.parametrize(
    "filters, change, holds",
    [
        (NEAREST, lambda x, allowed: allowed[0], True),
        (NEAREST, lambda x, allowed: allowed[-1], True),  # ties the other way round
        (NEAREST, lambda x, allowed: np.where(np.arange(5)[:, None] % 2, allowed[0], allowed[-1]), True),
        (NEAREST, lambda x, allowed: np.roll(allowed[0], 1, axis=1), False),
        (NEAREST, lambda x, allowed: changed(allowed[0], 2), False),
        (NEAREST, lambda x, allowed: reference(x[:, 3:], "HWC", size=(4, 5), **NEAREST), False),
        (GAUSSIAN, lambda x, allowed: allowed[-1], True),
        (GAUSSIAN, lambda x, allowed: np.roll(allowed[0], 1, axis=0), False),
        (GAUSSIAN, lambda x, allowed: reference(x, "HWC", size=(4, 5)), False),
        (GAUSSIAN, lambda x, allowed: reference(x[:, :-1], "HWC", size=(4, 5), **GAUSSIAN), False),
        (GAUSSIAN, lambda x, allowed: ndimage.gaussian_filter(allowed[0].astype("f4"), (0.5, 0.5, 0)), False),
    ],
)
def test_bounded_deviations(filters, change, holds):
    """Pixels at ties may be either neighbour, but not a shifted pixel or one of another sigma."""
    x = np.random.default_rng(4).integers(0, 256, (8, 20, 3), "u1")
    case = Case("u1", "HWC", {"size": (4, 5), **filters})
    allowed = references(x, "HWC", **case.kwargs)
    assert len(allowed) > 1
    ours, theirs = result(allowed[0]), result(np.asarray(change(x, allowed)).astype("u1"))
    for order in ((ours, theirs), (theirs, ours)):
        assert is_among(Either("ties", references), order, "resize", case, [x], {}, Bound(1)) == holds


def test_a_bounded_deviation_excuses_nothing_beyond():
    tally, differs = Tally(), {"size": Either("ties", lambda x, layout: [x])}
    assert not tally.excuse(Problem("off", "values", 0.5), differs, "uint8-size=3", lambda d: False)
    assert not tally.excuse(Problem("shape", "form"), {"form:size": differs["size"]}, "uint8-size=3", lambda d: True)
    assert not tally.deliberate
    assert tally.excuse(Problem("off", "values", 0.5), differs, "uint8-size=3", lambda d: True)
    assert tally.deliberate == {"ties": [0.5]}


def test_the_report_shows_all_of_it(monkeypatch):
    tally = Tally(cases=3, failures=["case: off by 7"], steps=1, equal=999, values=1000)
    tally.excuse(Problem("off", "values", 0.5), {"": "on purpose"}, "case")
    tally.note("refuses")
    monkeypatch.setattr(report, "TALLIES", {"resize": tally})
    text = report.text("2.4.0", "here")
    assert "| resize | 3 | 0 | 1 | 0 | 99.90 % | 1 | 1 |" in text
    assert (
        "| resize | 1 | 50 % | on purpose |" in text and "- `resize` case: off by 7" in text and "| refuses |" in text
    )


AT_LEAST = 20
# Tests that compare with DALI, but not with `op_test` or a recipe.
TESTS = {
    "zeros": [test_made.test_filled, test_made.test_filled_of_shapes_that_are_data],
    "ones": [test_made.test_filled, test_made.test_filled_of_shapes_that_are_data],
    "constant": [test_made.test_constant],
    "permute_batch": [test_made.test_permute_batch],
    "get_property": [test_files_and_facts.test_layout],
    "io.file.read": [test_files_and_facts.test_read, test_files_and_facts.test_nothing_to_read],
    "dump_image": [test_files_and_facts.test_dump_image],
    "multi_paste": [test_regions.test_multi_paste],
}
ELSEWHERE = {
    "decoders.image": "test_files.py compares it over all files there are",
    "decoders.image_crop": "the same",
    "decoders.image_slice": "the same",
    "peek_image_shape": "the same",
    "decoders.audio": "test_audio_files.py compares it over all formats",
    "peek_audio": "DALI has no such operator; its own test compares with the files that other libraries write",
    "audio.add_noise": "DALI has no such operator; its own test compares with the definition",
    "audio.loudness": "the same",
    "audio.reverb": "the same",
    "audio.speed_perturb": "the same",
    "arithmetic": "DALI has it as operators of DataNodes; its own test compares with the rules of types",
    "subscript": "the same",
    "python_function": "does what its function does",
    "dl_tensor_python_function": "the same",
}


def comparable():
    """Deterministic operators that DALI has for the CPU."""
    theirs = json.loads((Path(__file__).parent / "reference" / "operators.json").read_text())
    devices = {}
    for schema, about in theirs.items():
        *modules, cls = schema.split("__")
        devices[".".join([*modules, snake_case(cls)])] = about["devices"]
    for name, cls in REGISTRY.items():
        if not (name.startswith("_") or issubclass(cls, Source) or "seed" in cls.schema):
            if "cpu" in devices.get(name, ["cpu"]):
                yield name


def cases_of(name):
    count = sum(len(t.cases) for t in DECLARED.get(name, []))
    for recipe in (RECIPES[r] for r in RECIPES if r.split()[0] == name):
        count += sum(1 for _ in grid.cases(recipe, REGISTRY[name].schema))
    for test in TESTS.get(name, []):
        given = [(m.args[0], len(m.args[1])) for m in test.pytestmark if m.name == "parametrize"]
        count += math.prod(n for arguments, n in given if arguments != "name")
    return count


def test_every_deterministic_operator_has_enough_cases():
    """Ragged batches, types, layouts, arguments per sample: `make conformance` runs all of these."""
    counts = {name: cases_of(name) for name in comparable()}
    assert len(counts) > 80
    few = {name: n for name, n in counts.items() if n < AT_LEAST}
    assert few.keys() <= ELSEWHERE.keys(), {n: c for n, c in few.items() if n not in ELSEWHERE}
    assert ELSEWHERE.keys() <= few.keys()


# Reasons why arguments are in no case, or in none per sample or per frame.
UNUSED = {
    ("", "rule"): "Pillow's and PyTorch's pixels, which DALI has not",
    ("decoders.", "*"): "what files are decoded with is compared by test_files.py",
    ("experimental.dilate", "*"): "DALI has it on the GPU only",
    ("experimental.erode", "*"): "the same",
    ("jitter", "*"): "the same",
    ("audio_resample", "antialias"): "DALI has no such argument",
    ("", "interp_type"): "DALI wants data of its own type of enumerations",
    ("", "min_filter"): "the same",
    ("", "mag_filter"): "the same",
    ("squeeze", "axes"): "DALI does not see axes that are data",
    ("transforms.rotation", "axis"): "frames that turn about axes of their own are held to the definition only",
}


def used(name):
    """How cases specify each argument: as a constant, per sample or per frame. And their layouts."""
    cases = [c for t in DECLARED.get(name, []) for c in t.cases]
    for recipe in (RECIPES[r] for r in RECIPES if r.split()[0] == name):
        cases += grid.cases(recipe, REGISTRY[name].schema)
    ways = {(k, "constant" if not isinstance(v, Column) else "frames" if v.per_frame else "samples") for c in cases
            for k, v in c.kwargs.items()}  # fmt: skip
    return ways, {c.layout for c in cases}


@pytest.mark.parametrize("name", sorted(n for n in comparable() if n in DECLARED))
def test_every_argument_and_layout_is_compared(name):
    ways, layouts = used(name)
    gaps = [f"layout {layout}" for layout in REGISTRY[name].layouts if layout not in layouts]
    for arg in REGISTRY[name].schema.values():
        excused = any(name.startswith(n) and a in ("*", arg.name) for n, a in UNUSED)
        if excused or arg.hidden or arg.deprecated or arg.name in ("preserve", "seed", "name", "bytes_per_sample_hint"):
            continue
        if not any(k == arg.name for k, _ in ways):
            gaps.append(f"{arg.name} in any way")
        elif isinstance(arg, PerSample) and not {(arg.name, "samples"), (arg.name, "frames")} & ways:
            gaps.append(f"{arg.name} per sample")
        elif isinstance(arg, PerFrame) and (arg.name, "frames") not in ways:
            gaps.append(f"{arg.name} per frame")
    assert not gaps, "no case has: " + ", ".join(gaps)


def test_every_random_operator_is_compared():
    """Their distributions are compared: the report has a row for each."""
    text = (Path(__file__).parents[1] / "docs" / "conformance.md").read_text()
    random = [n for n, c in REGISTRY.items() if "seed" in c.schema and not n.startswith("_")]
    random = [n for n in random if not issubclass(REGISTRY[n], Source) and not n.startswith("audio.")]  # not in DALI
    assert len(random) > 15 and not [n for n in random if f"| {n} |" not in text]
