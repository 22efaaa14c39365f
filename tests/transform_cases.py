# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of fn.transforms: inputs, and the application of references to them."""

import numpy as np

from penstock import fn, pipeline_def

FRAMES = (2, 1, 3, 2)


def inputs(d):
    """`make_input`: transforms of d dimensions, or sequences of them, depending on the layout."""

    def make(rng, case):
        shapes = [(f, d, d + 1) for f in FRAMES] if case.layout else [(d, d + 1)] * len(FRAMES)
        return [rng.uniform(-2, 2, s).astype("f4") for s in shapes]

    return make


def square(m):
    """(d, d + 1) as (d + 1, d + 1)."""
    return np.vstack([m, np.eye(m.shape[1])[-1]]).astype("f8")


def applied(matrix, x, reverse_order):
    """The first rows of the product of a matrix (d + 1, d + 1) and an input (d, d + 1)."""
    product = square(x) @ matrix if reverse_order else matrix @ square(x)
    return product[:-1].astype("f4")


def around(center, linear):
    """(d + 1, d + 1): moves `center` to the origin, applies `linear`, moves it back."""
    d = len(linear)
    there, back, full = np.eye(d + 1), np.eye(d + 1), np.eye(d + 1)
    full[:d, :d] = linear
    if center is not None:
        there[:d, d], back[:d, d] = -np.asarray(center, "f8"), center
    return back @ full @ there


def made(name, n=1, **kwargs):
    """The samples and the layout of an operator's output without an input."""

    @pipeline_def(batch_size=n, num_threads=1)
    def pipe():
        given = {k: v() if callable(v) else v for k, v in kwargs.items()}
        return getattr(fn.transforms, name)(**given)

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(n)], out.layout()


def fed(*samples):
    """A data argument with one value (or list of values) per sample."""
    return lambda: fn.external_source(source=lambda i: [np.array(s, "f4") for s in samples])


def fed_frames(*samples):
    """The same, with one value per frame."""
    return lambda: fn.per_frame(fed(*samples)())
