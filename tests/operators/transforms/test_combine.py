# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def
from transform_cases import inputs, square


def reference(*transforms, reverse_order=False):
    product = np.eye(transforms[0].shape[0] + 1)
    for t in transforms[::-1] if reverse_order else transforms:
        product = square(t) @ product
    return product[:-1].astype("f4")


def more(count, d):
    return lambda rng, case: [[rng.uniform(-2, 2, (d, d + 1)).astype("f4") for _ in range(4)] for _ in range(count)]


def declared(count, d):
    return op_test(
        "transforms.combine",
        reference,
        ("f4",),
        ("", "F**"),
        args=[{"reverse_order": r} for r in (False, True)],
        make_input=inputs(d),
        extra_inputs=more(count, d),
        atol=2e-5,
    )


TestTwo = declared(1, 2)
TestThree = declared(2, 2)
TestSeven = declared(6, 2)
TestSpace = declared(1, 3)
TestFourInSpace = declared(3, 3)
TestLine = declared(2, 1)


def run(*samples_and_layouts):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        feeds = [fn.external_source(source=lambda i, s=s: [s] * 2, layout=lay) for s, lay in samples_and_layouts]
        return fn.transforms.combine(*feeds)

    (out,) = pipe().run()
    return np.array(out.at(0)), out.layout()


def test_sequences():
    rng = np.random.default_rng(0)
    one, frames = rng.random((2, 3)).astype("f4"), rng.random((5, 2, 3)).astype("f4")
    out, layout = run((one, None), (frames, "F**"))
    assert layout == "F**"
    np.testing.assert_allclose(out, [reference(one, f) for f in frames], rtol=1e-5)
    out, layout = run((frames, "F**"), (frames, "F**"))
    np.testing.assert_allclose(out, [reference(f, f) for f in frames], rtol=1e-5)
    with pytest.raises(RuntimeError, match="3 and 5 frames"):
        run((frames, "F**"), (frames[:3], "F**"))


def test_errors():
    plane, space = np.eye(2, 3, dtype="f4"), np.eye(3, 4, dtype="f4")
    with pytest.raises(RuntimeError, match="the same shape"):
        run((plane, None), (space, None))
    with pytest.raises(ValueError, match="2"):
        run((plane, None))
