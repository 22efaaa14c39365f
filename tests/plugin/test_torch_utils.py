# SPDX-License-Identifier: Apache-2.0
"""Batches and samples as PyTorch tensors, without an iterator."""

import pytest

torch = pytest.importorskip("torch")

from penstock.plugin.pytorch import feed_ndarray, to_torch_type  # noqa: E402


def test_types_by_dali_type():
    from penstock import types

    assert to_torch_type[types.FLOAT] is torch.float32
    assert to_torch_type[types.UINT8] is torch.uint8
    # Programs invert the dictionary.
    assert {v: k for k, v in to_torch_type.items()}[torch.float16] == types.FLOAT16
    assert len(to_torch_type) >= 9 and types.STRING not in to_torch_type


def test_feed_ndarray(make):
    out = make.reader().run()[1]
    target = torch.zeros(2, 1, dtype=torch.int32)
    assert feed_ndarray(out, target) is target and target.flatten().tolist() == [0, 1]
    assert feed_ndarray(out[1], torch.zeros(1, dtype=torch.int32)).tolist() == [1]
    with pytest.raises(ValueError, match="shapes differ"):
        feed_ndarray(out, torch.zeros(2, dtype=torch.int32))
    with pytest.raises(TypeError, match="types differ"):
        feed_ndarray(out, torch.zeros(2, 1))


def test_to_torch_tensor(make):
    from penstock.plugin.pytorch.torch_utils import to_torch_tensor

    out = make.reader().run()[1]
    assert to_torch_tensor(out, copy=False).data_ptr() == out.data_ptr() != to_torch_tensor(out, copy=True).data_ptr()
    assert to_torch_tensor(out[1], copy=True).tolist() == [1]
