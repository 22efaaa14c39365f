# SPDX-License-Identifier: Apache-2.0
"""Defining and running pipelines."""

import numpy as np

import penstock
from penstock import DataNode, Pipeline, PipelineError, SampleError, TensorCPU, TensorListCPU, fn, pipeline_def, types
from penstock.pipeline import do_not_convert
from penstock.tensors import TensorListGPU


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=1, on_error="skip", max_errors=3, exec_dynamic=True)
def training(folder: str, side: int = 224) -> tuple[DataNode, DataNode]:
    jpegs, labels = fn.readers.file(file_root=folder, name="reader")
    return fn.resize(fn.decoders.image(jpegs), size=[side, side]), labels.gpu()


@pipeline_def(enable_conditionals=True, debug=False, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 1})
def branching(x: DataNode) -> DataNode:
    return -x if x > 1 else x[0, 1:] + 2 * x.shape(dtype=types.INT32)


@pipeline_def
def bare() -> DataNode:
    return fn.external_source(name="x")


@do_not_convert
def larger(a: int, b: int) -> int:
    return a if a > b else b


pipe: Pipeline = training("folder", side=96, batch_size=4)
pipe.build()
images, labels = pipe.run()
array: np.ndarray = images.as_array()
sample: TensorCPU = images[larger(0, 1)]
batches: list[TensorListCPU] = [*pipe.run(), *pipe.share_outputs()]
sizes: dict[str, int] = pipe.epoch_size()
errors: list[SampleError] = pipe.errors()
print(pipe.explain(), pipe.stats(), pipe.batch_size, pipe.reader_meta()["reader"]["epoch_size"], len(images))
pipe.feed_input("x", [np.zeros(3)])
state: bytes = pipe.checkpoint("state")
with Pipeline(batch_size=2, num_threads=1, device_id=0) as other:
    other.set_outputs(bare)
penstock.backend.RegisteredCPUOps()
try:
    bare(batch_size=1).run(x=np.zeros((1, 3)))
except PipelineError as error:
    print(error)


class OldStyle(Pipeline):
    def define_graph(self) -> tuple[DataNode, ...]:
        return (bare_node(),)


def bare_node() -> DataNode:
    return fn.external_source(name="x")


def on_gpu(batch: TensorListGPU) -> TensorListCPU:
    return batch.as_cpu()


pipeline_def(batch_sise=8)  # found: call-overload
pipeline_def(batch_size="8")  # found: call-overload
pipeline_def(3)  # found: call-overload
Pipeline(batch_size=8, num_thread=2)  # found: call-arg
Pipeline(batch_size="8")  # found: arg-type
pipe.runn()  # found: attr-defined
pipe.set_batch_size("4")  # found: arg-type
images.as_aray()  # found: attr-defined
images[0].shap()  # found: attr-defined
bare_node().gpuu()  # found: attr-defined
penstock.Pipelin  # found: attr-defined
penstock.tensors.TensorListCPUU  # found: attr-defined
