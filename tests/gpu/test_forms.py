# SPDX-License-Identifier: Apache-2.0
"""The declarations in the first lines of kernels' .cu files."""

from pathlib import Path

import pytest

from penstock.core import kernels
from penstock.gpu import forms

FIELDS = ("start", "origin", "perm", "border", "first", "count", "status")


def parse(*lines):
    return forms._parse("\n".join(["// SPDX", *lines, '#include "core/gpu.h"', "// border: start"]), FIELDS)


def test_all_that_can_be_said():
    said = parse(
        "// form: own",
        "// form with one input: values",
        "// constants: perm, border",
        "// axes: perm",
        "// begin: start - origin",
        "// border: border",
        "// computes along: first, count",
        "// status: status",
        "// launch: f<To0::T, From0::T>(l); 4096 bytes of in[1] per block of 64 threads",
        "// joined: a/first by a/both",
    )
    launch = forms.SimpleLaunch("f<To0::T, From0::T>(l);", 4096, True, False, 1, 64)
    assert said == forms.Description(
        *("own", "values", ("perm", "border"), "perm", "start", "origin", "border"),
        *("first", "count", "status", launch, ("a/first", "a/both")),
    )


def test_a_kernel_may_say_its_form_only():
    assert parse("// form: places", "// Text that explains: this.") == forms.Description("places", "places")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("// constants: scale", "'constants' names scale, but the arguments are start, origin"),
        ("// begin: start - offset", "'begin' names offset"),
        ("// axis: perm", "'axis: perm' is not understood"),
        ("// axes: perm, start", "is not understood"),
        ("// computes along: first", "is not understood"),
        ("// launch: f(l); 12 pixels of out[0] per block of 64 threads", "does not read as"),
        ("// launch: f(l); 12 elements of out[0]", "does not read as"),
        ("// joined: a/first", "does not read as"),
    ],
)
def test_what_is_wrong_is_said(line, message):
    with pytest.raises(ValueError) as e:
        parse("// form: places", line)
    assert message in str(e.value)


@pytest.mark.parametrize("lines", [(), ("// form: pointwise",)])
def test_the_form_must_be_known(lines):
    with pytest.raises(ValueError, match="is none of values, pixels"):
        parse(*lines)


@pytest.mark.skipif(not list(Path(kernels.ROOT).rglob("*.cpp")), reason="needs the sources")
def test_all_kernels_describe_themselves():
    root = Path(kernels.ROOT)
    with_form = [p for p in root.rglob("*.cu") if "\n// form: " in p.read_text()]
    assert len(with_form) > 30
    for path in with_form:
        name = str(path.relative_to(root).with_suffix(""))
        said = forms.described(name)
        if said.form in ("block", "own"):
            assert callable(forms.companion(name))
        else:
            assert said.launch is None
    # No Python is left over beside something else.
    beside = {p.with_suffix(".cu") for p in root.rglob("*.py")}
    assert beside <= set(with_form)


def test_a_launch_stands_in_one_place(monkeypatch):
    monkeypatch.setattr(forms, "beside", lambda kernel: None)
    with pytest.raises(ImportError, match="found neither"):
        forms.companion.__wrapped__("math/normalize")
    module = type("Module", (), {"plan": None})
    monkeypatch.setattr(forms, "beside", lambda kernel: module)
    with pytest.raises(ImportError, match="found both"):
        forms.companion.__wrapped__("bbox/bb_flip")
