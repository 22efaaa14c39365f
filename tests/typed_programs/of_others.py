# SPDX-License-Identifier: Apache-2.0
"""Running programs of DALI, functions for Numba, servers, operators of one's own."""

import penstock.as_dali.__main__
from penstock import DataNode, fn, pipeline_def, plugin_manager, types
from penstock.core.batch import Batch
from penstock.core.op import Arguments, Operator, PerSample
from penstock.plugin.numba.experimental import NumbaFunction
from penstock.plugin.numba.fn.experimental import numba_function
from penstock.plugin.triton import autoserialize
from penstock.registry import function_of
from penstock.tfrecord import FixedLenFeature, VarLenFeature, float32, int64


class Twice(Operator):
    """Each value is there twice."""

    times = PerSample(int, 2, "How often.")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        return inputs[0]


twice = function_of(Twice)


@autoserialize
@pipeline_def(batch_size=2)
def served() -> DataNode:
    x = twice(fn.external_source(name="x"), times=3)
    y = numba_function(
        x, run_fn=print, out_types=[types.UINT8], in_types=[types.UINT8], outs_ndim=[1], ins_ndim=[1], preserve=True
    )
    z = NumbaFunction(print, [types.UINT8], [types.UINT8], [1], [1])(y)
    return z


served().run()
features = {"x": FixedLenFeature((), int64, 0), "y": VarLenFeature(float32, 0.0)}
penstock.as_dali.__main__.main()

penstock.as_dali.runn()  # found: attr-defined
plugin_manager.load_librar("x")  # found: attr-defined
plugin_manager.load_library(3)  # found: arg-type
function_of("twice")  # found: arg-type
FixedLenFeature((), int64, 0, defaultt=3)  # found: call-arg
