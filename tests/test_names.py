# SPDX-License-Identifier: Apache-2.0
"""Unknown names: modules, enumerations and operators suggest the most similar one."""

import enum
import pickle
import subprocess
import sys

import pytest

import penstock
from penstock import fn, math, ops, tensors, types
from penstock.experimental import dynamic as ndd
from penstock.plugin.base_iterator import LastBatchPolicy

NEAREST = [
    (penstock, "pipline_def", "'pipeline_def'"),
    (math, "sqr", "'sqrt'"),
    (ndd.math, "sqr", "'sqrt'"),
    (tensors, "TensorListCPUU", "'TensorListCPU'"),
    (types, "UNIT8", "'UINT8'"),
    (types, "float", "'FLOAT'"),
    (types, "Interp_linear", "'INTERP_LINEAR'"),
    (types, "GREY", "'GRAY'"),
    (types, "DALIDatType", "'DALIDataType'"),
    (types.DALIDataType, "UNIT8", "'UINT8'"),
    (types.DALIInterpType, "LINEAR", "'INTERP_LINEAR'"),
    (LastBatchPolicy, "PARTAL", "'PARTIAL'"),
    (fn, "rezise", "'resize'"),
    (fn, "RESIZE", "'resize'"),
    (fn, "image", "fn.decoders.image"),
    (fn, "mean", "fn.reductions.mean"),
    (fn, "reader", "'readers'"),
    (fn.readers, "fille", "'file'"),
    (fn.decoders, "brightness", "fn.brightness"),
    (ops, "Rezise", "'Resize'"),
    (ops, "Gaussian", "ops.noise.Gaussian"),
]


@pytest.mark.parametrize("owner, name, nearest", NEAREST, ids=lambda v: v if isinstance(v, str) else "")
def test_the_nearest_name(owner, name, nearest):
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    assert f"'{name}'" in str(error.value) and f"Did you mean {nearest}?" in str(error.value)


@pytest.mark.parametrize("owner", [penstock, math, types, fn, types.DALIDataType, LastBatchPolicy])
@pytest.mark.parametrize("name", ["xyzzy", "__wrapped__", "_private"])
def test_nothing_is_near(owner, name):
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    assert f"'{name}'" in str(error.value) and "Did you mean" not in str(error.value)


@pytest.mark.parametrize("plugin, name", [("pytorch", "DALIGenericIteratr"), ("jax", "data_iterater")])
def test_of_plugins(plugin, name):
    module = pytest.importorskip(f"penstock.plugin.{plugin}")
    with pytest.raises(AttributeError, match="Did you mean '(DALIGenericIterator|data_iterator)'"):
        getattr(module, name)


def test_enumerations_are_as_before():
    kind = types.DALIDataType
    assert isinstance(kind, enum.EnumMeta) and kind["UINT8"] is kind(0) is kind.UINT8 is types.UINT8
    assert pickle.loads(pickle.dumps(types.UINT8)) is types.UINT8 and len(kind) == 20
    assert not hasattr(kind, "__wrapped__") and LastBatchPolicy("partial") is LastBatchPolicy.PARTIAL


@pytest.mark.parametrize("plugin", ["pytorch", "jax"])
def test_a_definition_is_no_pipeline(plugin):
    module = pytest.importorskip(f"penstock.plugin.{plugin}")

    @penstock.pipeline_def(batch_size=2)
    def training():
        return fn.external_source(name="x")

    with pytest.raises(TypeError, match=r"got function; call it: training\(batch_size=...\) gives a pipeline"):
        module.DALIGenericIterator(training, ["x"])
    with pytest.raises(TypeError, match=r"pipelines takes a Pipeline or a list of them; got int$"):
        module.DALIGenericIterator(3, ["x"])


def test_arguments_of_functions():
    jax_function = pytest.importorskip("penstock.plugin.jax.fn").jax_function
    clu = pytest.importorskip("penstock.plugin.jax.clu")
    torch = pytest.importorskip("penstock.plugin.pytorch")
    from penstock.auto_aug import auto_augment, rand_augment, trivial_augment

    x = fn.external_source(name="x")
    for call, text in [
        (lambda: jax_function(abs, num_output=2), r"jax_function\(\) .*'num_output'. Did you mean 'num_outputs'"),
        (lambda: clu.peekable_data_iterator(output_mop=["x"]), r"peekable_data_iterator\(\) .* mean 'output_map'"),
        (lambda: torch.TorchPythonFunction(abs, num_outptus=2), r"TorchPythonFunction\(\) .* mean 'num_outputs'"),
        (lambda: auto_augment.auto_augment(x, polisy_name="svhn"), r"auto_augment\(\) .* mean 'policy_name'"),
        (lambda: rand_augment.rand_augment(x, 2, 9, fill_values=3), r"rand_augment\(\) .* mean 'fill_value'"),
        (lambda: trivial_augment.trivial_augment_wide(x, exclude=[]), r"trivial_augment_wide\(\) .* 'excluded'"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="got 'imagenet'. Did you mean 'image_net'"):
        auto_augment.auto_augment(x, "imagenet")


@pytest.mark.parametrize(
    "module",
    ["backend", "external_source", "internal", "pickling", "plugin_manager", "reducers", "sysconfig", "tfrecord"],
)
def test_modules_that_need_no_import_of_their_own(module):
    """`import nvidia.dali` imports them, too."""
    program = f"import penstock; assert penstock.{module}.__name__ == 'penstock.{module}'"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("module", ["auto_aug", "experimental", "metrics", "plugin", "transforms", "video"])
def test_modules_that_need_an_import(module):
    program = f"""if True:
        import penstock
        try:
            penstock.{module}
        except AttributeError as error:
            print(error)
        import penstock.{module}
        penstock.{module}"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout == f"module 'penstock' has no attribute '{module}' yet; write import penstock.{module}\n"
