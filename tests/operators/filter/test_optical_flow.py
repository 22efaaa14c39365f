# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def test_it_is_refused_when_the_pipeline_is_defined():
    @pipeline_def(batch_size=1, device_id=0)
    def pipe():
        x = types.Constant(np.zeros((2, 64, 64, 3), "u1"), layout="FHWC", device="gpu")
        return fn.optical_flow(x, preset=1.0, output_grid=2)

    with pytest.raises(NotImplementedError, match="fn.optical_flow is not supported: .* read it by fn.external_source"):
        pipe()
