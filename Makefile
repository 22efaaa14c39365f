# SPDX-License-Identifier: Apache-2.0
# Sets up what each target needs: a virtual environment, system packages where it may, the native library.
PYTHON ?= python3
VENV ?= .venv
SECONDS ?= 300
ISA ?=
# Of the processor that a wheel is for; by default this machine's.
ARCH ?=
# Whether tests that failed are run once more, alone; 1 in .ci/run only. (pytest's status is 1 if all of them were run.)
# What failed is kept apart, as tests of other targets, run at the same time, forget it when they end; and what other
# targets test is left to them.
AGAIN ?=
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 8 ] && echo $$n || echo 8)
# The requirement for PyTorch in tests; by default a release for Python 3.11, nothing for others (its tests are skipped).
TORCH ?= $(shell $(PYTHON) -c 'import sys; print("torch==2.13.0 lightning==2.6.6 torchdata==0.11.0" * (sys.version_info[:2] == (3, 11)))' 2>/dev/null)
# The torchvision that fits it, an oracle. It goes into a folder apart, where only its tests look for it: with a PyTorch
# without CUDA its compiled operators can't be loaded, and whatever imports it (Lightning does if it can) fails.
TORCHVISION ?= $(patsubst torch==2.13.0,torchvision==0.28.0,$(filter torch==2.13.0,$(TORCH)))

# Those for TensorFlow and PaddlePaddle in `make frameworks`, in the same way.
TF ?= $(shell $(PYTHON) -c 'import sys; print("tensorflow-cpu==2.21.0" * (sys.version_info[:2] == (3, 11)))' 2>/dev/null)
PADDLE ?= $(shell $(PYTHON) -c 'import sys; print("paddlepaddle==3.3.1" * (sys.version_info[:2] == (3, 11)))' 2>/dev/null)

ifneq ($(wildcard ../shared/data),)
export PENSTOCK_DATA ?= $(abspath ../shared/data)
endif
DATA ?= $(or $(PENSTOCK_DATA),examples/data)
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The newest NumPy has no wheel for Python 3.13t: an older one's wheel, not half an hour of compiling.
export PIP_PREFER_BINARY = 1
PY := $(VENV)/bin/python
# What installs packages: pip, as it is set up on the machine; in .ci/run uv, in a fifth of the time. Nothing is compiled to
# byte code before it is used, which takes half of pip's time.
INSTALLER ?= pip
UV := $(if $(filter uv,$(INSTALLER)),$(VENV)/bin/uv)
PIP_OF = $(if $(UV),$(UV) pip install -q $(addprefix --find-links ,$(PIP_FIND_LINKS)) --python $(1),$(1) -m pip install -q --no-compile)
PIP = $(call PIP_OF,$(PY))
INSTALL = $(PY) tools/requirements.py $(1) >$(VENV)/requirements.txt && $(PIP) -r $(VENV)/requirements.txt
PYTEST := $(PY) -m pytest -q -n $(WORKERS) --dist worksteal --durations 20 --ignore=tests/conformance
# Of a framework: $(1) is its environment, $(2) its tests, $(3) those among the docstrings and tutorials. In one process,
# as importing the framework takes seconds.
PYTEST_BESIDE = TF_CPP_MIN_LOG_LEVEL=3 $(VENV)/$(1)/bin/python -m pytest -q $(2) tests/as_dali/test_face.py \
  tests/test_guide.py::test_guide tests/test_guide.py::test_page tests/test_docstrings.py tests/test_notebooks.py \
  tests/test_typing.py -k "not (test_docstrings or test_notebooks or test_typing) or $(3)"
BESIDE_OTHERS := $(if $(AGAIN),-o cache_dir=build/test_cache --ignore=tests/arm --ignore=tests/test_wheel.py)
SANITIZED = LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so.6)" PYTHONPATH=build/asan \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:abort_on_error=1$(1)
# Not where it is switched off: precompiled headers take its place then, see CMakeLists.txt.
CCACHE := $(if $(CCACHE_DISABLE),,$(shell command -v ccache))
CMAKE := $(VENV)/bin/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV))/bin/ninja \
  -DPython_EXECUTABLE=$(abspath $(PY)) $(if $(CCACHE),-DCMAKE_CXX_COMPILER_LAUNCHER=$(CCACHE))
C_FILES := $(shell find kernels tools tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.c' 2>/dev/null)

.PHONY: help demo arm free-threaded release test frameworks frameworks-tf frameworks-paddle environments requirements ray check lint format build conformance bench fuzz soak gpu-test gpu-sanitize wheel sdist stubs notebooks site clean
.DELETE_ON_ERROR:

help: ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## run the main job on examples/data; writes a contact sheet
	@$(PY) examples/demo.py

test: build $(VENV)/.test $(VENV)/.typing ## install the test extras and run all tests
	$(PYTEST) $(BESIDE_OTHERS) tests $(if $(AGAIN),|| { [ $$? -eq 1 ] && $(PY) -m pytest -q $(BESIDE_OTHERS) --last-failed --last-failed-no-failures none tests; })

frameworks: frameworks-tf frameworks-paddle ## run the tests of the plugins for TensorFlow and PaddlePaddle, each in an environment of its own

frameworks-tf: build $(if $(TF),$(VENV)/.beside-tf)
ifeq ($(TF),)
	@echo "No TensorFlow for this Python: its tests are skipped (have it: make frameworks TF=tensorflow)"
else
	$(call PYTEST_BESIDE,tf,$(wildcard tests/plugin/test_tf*.py) tests/operators/read/test_as_tensorflow.py,plugin.tf or keras)
endif

frameworks-paddle: build $(if $(PADDLE),$(VENV)/.beside-paddle)
ifeq ($(PADDLE),)
	@echo "No PaddlePaddle for this Python: its tests are skipped (have it: make frameworks PADDLE=paddlepaddle)"
else
	$(call PYTEST_BESIDE,paddle,tests/plugin/test_paddle.py tests/plugin/test_iterator_grid.py,paddle)
endif

environments: $(if $(TF),$(VENV)/.beside-tf) $(if $(PADDLE),$(VENV)/.beside-paddle) ## install the environments of `frameworks`

# In turn: pip can't install two things into one environment at a time.
requirements: $(VENV)/.core ## install what `test`, `lint`, `conformance` and `sdist` need
	@for group in dev typing test sdist conformance; do $(MAKE) --no-print-directory $(VENV)/.$$group || exit 1; done

# Not part of continuous integration: Ray takes seconds to start each worker, and the server is a large download.
ray: build $(VENV)/.beside-ray $(VENV)/.beside-triton ## run the tests of workers, Ray Data and Triton on the real ones, in environments of their own
	PENSTOCK_TRITON=$(abspath $(VENV)/triton) $(VENV)/ray/bin/python -m pytest -q $(wildcard tests/cluster/test_ray*.py) \
	  $(wildcard tests/plugin/test_ray*.py) tests/plugin/test_triton_server.py

check: build $(VENV)/.test lint ## the quick gate: build, linters, types, one test of ten (two minutes)
	$(PYTEST) -m "not slow" --every 10 tests

lint: $(VENV)/.dev $(VENV)/.typing ## ruff, clang-format and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)
	$(VENV)/bin/mypy $(wildcard src/penstock/*.py) $(addprefix src/penstock/,core graph exec gpu pipeline tensors registry cli metrics as_dali experimental/dynamic operators external plugin cluster)

format: $(VENV)/.dev ## let ruff and clang-format rewrite the sources
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(C_FILES)

build: $(VENV)/.core ## build the native library into src/penstock
	@mkdir -p build
	@$(CMAKE) -S . -B build/release -DISA=$(ISA) >build/configure.log || { cat build/configure.log; exit 1; }
	@if [ -t 1 ]; then MAKEFLAGS= $(VENV)/bin/ninja -C build/release; else MAKEFLAGS= $(VENV)/bin/ninja -C build/release --quiet; fi

conformance: build $(VENV)/.test $(VENV)/.conformance ## compare with the real DALI 2.4 (SAMPLE=1: a part of it); writes docs/conformance.md
	$(PY) -m pytest -q tests/conformance $(if $(SAMPLE),--sample)

bench: build $(VENV)/.test $(VENV)/.conformance ## run the benchmarks on DATA=folder; writes bench/results and docs/benchmarks.md
	@set -e; for script in $$(grep -l __main__ bench/*.py); do echo "== $$script"; $(PY) $$script --data $(DATA); done
	@$(PY) tools/benchmarks_page.py

gpu-test: build $(VENV)/.test ## run the GPU's tests on a GPU of this machine (without one: on an emulated device, by `make test`)
	PENSTOCK_TEST_GPU=1 $(PY) -m pytest -q tests/gpu tests/operators -k gpu

gpu-sanitize: build $(VENV)/.test ## the same under compute-sanitizer's memcheck and racecheck (EVERY=10: a tenth of it)
	$(PY) tests/gpu/sanitize.py --every $(or $(EVERY),1)

fuzz: build $(VENV)/.test ## damaged files, and odd programs of operators, under AddressSanitizer for SECONDS=300
	$(PY) tests/fuzz/fuzz_decode.py --seconds $$(($(SECONDS) / 4))
	$(PY) tests/fuzz/fuzz_audio.py --seconds $$(($(SECONDS) / 4))
	$(PY) tests/fuzz/fuzz_video.py --seconds $$(($(SECONDS) / 4))
	$(PY) tests/fuzz/fuzz_video_decoders.py --inputs $$(($(SECONDS) * 10))
	$(PY) tests/fuzz/fuzz_http.py --seconds $$(($(SECONDS) / 8))
	$(PY) tests/fuzz/fuzz_read.py --inputs $$(($(SECONDS) * 50))
	$(PY) tests/fuzz/fuzz_tables.py --seconds $$(($(SECONDS) / 8))
	@rm -rf build/asan/penstock && mkdir -p build/asan && cp -r src/penstock build/asan && cp -r kernels build/asan/penstock
	@$(CMAKE) -S . -B build/asan -DSANITIZE=ON -DLIBRARY_FOLDER=$(abspath build/asan/penstock) >build/configure.log || { cat build/configure.log; exit 1; }
	@rm -f build/asan/penstock/libpenstock.so; $(VENV)/bin/ninja -C build/asan --quiet
	$(call SANITIZED,) $(PY) tests/fuzz/fuzz_pipeline.py --seconds $$(($(SECONDS) / 4))
	$(call SANITIZED,:max_allocation_size_mb=512) $(PY) tests/fuzz/fuzz_operators.py --seconds $$(($(SECONDS) / 4))

soak: build $(VENV)/.test ## run sources and pipelines in workers, with faults, for SECONDS=300; fails if anything grows or differs
	$(PY) tests/soak/soak_external.py --seconds $$(($(SECONDS) / 3))
	$(PY) tests/soak/soak_workers.py --seconds $$(($(SECONDS) / 3))
	$(PY) tests/soak/soak_restarts.py --seconds $$(($(SECONDS) / 3))

wheel: build $(VENV)/.wheel $(VENV)/.test ## build dist/penstock-*-py3-none-manylinux*.whl with its codecs, and test it (ARCH=aarch64: for 64-bit ARM)
	@sh tools/system_packages.sh $(PYTHON) nasm patch $(if $(filter aarch64,$(ARCH)),g++-aarch64-linux-gnu)
	$(PY) tools/build_wheel.py $(ARCH)
	$(PY) -m pytest -q tests/test_wheel.py

sdist: $(VENV)/.core $(VENV)/.sdist $(VENV)/.test ## build dist/penstock-*.tar.gz, install as from it, with the system's codecs, and test both
	@rm -rf build/sdist dist/penstock-*.tar.gz && mkdir -p build/sdist dist
	@$(PY) -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(if $(CCACHE),CMAKE_CXX_COMPILER_LAUNCHER=$(CCACHE)) $(PY) -m pip wheel -q --no-deps \
	  --no-build-isolation -w build/sdist .
	$(PY) -m pytest -q tests/test_wheel.py

arm: build $(VENV)/.test ## compile the loops in NEON for 64-bit ARM and compare them with AVX2's in QEMU (ALL=1: kernels, decoders, operators)
	@sh tools/system_packages.sh $(PYTHON) g++-aarch64-linux-gnu qemu-user
	$(PY) -m pytest -q tests/arm
	$(if $(ALL),$(MAKE) wheel ARCH=aarch64)
	$(if $(ALL),PYTHON=$(abspath $(PY)) sh tools/arm_test.sh)

free-threaded: build $(VENV)/.threads ## the tests of threads, pipelines and executors, for PYTHON=python3.13t or python3.14t
	$(PY) -m pytest -q tests/test_free_threading.py tests/core tests/exec tests/pipeline tests/tensors -m "not slow" --every $(or $(EVERY),3)

release: $(VENV)/.core $(VENV)/.wheel ## check and build the release VERSION=0.2.0; PUBLISH=1 also signs and uploads it
	@sh tools/system_packages.sh $(PYTHON) nasm patch g++-aarch64-linux-gnu
	$(if $(PUBLISH),$(PIP) sigstore twine)
	$(PY) tools/release.py $(VERSION) $(if $(PUBLISH),--publish)

stubs: $(VENV)/.core ## write the stubs of fn and ops (`make build` does so, too)
	$(PY) tools/stubs.py

notebooks: build $(VENV)/.test ## run the tutorials in examples/ (NOTEBOOKS=files); SAVE=1 stores what they show
	$(PY) tools/notebooks.py $(NOTEBOOKS) $(if $(SAVE),--save)

site: build $(VENV)/.beside-site ## build the documentation site in build/site/html (EXTERNAL=1: also check links to others; BROWSER=1: look at it in Chromium)
	$(PY) tools/build_site.py
	@rm -rf build/site/html
	$(VENV)/site/bin/python -m sphinx -W --keep-going -q -j auto build/site/source build/site/html
	$(PY) tools/check_site.py build/site/html $(if $(EXTERNAL),--external)
	$(if $(BROWSER),sh tools/system_packages.sh $(PYTHON) chromium && $(VENV)/site/bin/python -m pip install -q axe-core-python)
	$(if $(BROWSER),$(VENV)/site/bin/python tools/look_at_site.py build/site/html build/site/pictures)

clean: ## remove everything that was built, the virtual environment too
	rm -rf build dist $(VENV) src/penstock/libpenstock.so src/penstock/fn/*.pyi src/penstock/ops/*.pyi

# Stamps: each group of requirements is installed again when pyproject.toml changes.
$(VENV)/.core: pyproject.toml tools/system_packages.sh
	@sh tools/system_packages.sh $(PYTHON)
	@mkdir -p build
	@echo "Preparing $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(if $(UV),$(PY) -m pip install -q uv)
	@$(call INSTALL,project build)
	@echo $(abspath src) >$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/penstock.pth
	@touch $@

$(VENV)/.test: pyproject.toml Makefile | $(VENV)/.core
	@echo "Installing the test requirements"
	@$(call INSTALL,test servers jax tutorials cuda13)
	@$(if $(TORCH),$(PIP) $(TORCH) lightning,echo "No PyTorch for this Python: its tests are skipped (have it: make test TORCH=torch)")
	@$(if $(TORCHVISION),$(PIP) --upgrade --no-deps --target $(VENV)/torchvision $(TORCHVISION))
	@touch $@

# Apart from the others, see the decision on TensorFlow in docs/decisions.
$(VENV)/.beside-%: pyproject.toml Makefile | $(VENV)/.core
	@echo "Installing $(if $(filter tf,$*),$(TF),$(PADDLE))"
	@$(PYTHON) -m venv $(VENV)/$*
	@$(PY) tools/requirements.py project test typing >$(VENV)/$*/requirements.txt
	@$(call PIP_OF,$(VENV)/$*/bin/python) -r $(VENV)/$*/requirements.txt $(if $(filter tf,$*),$(TF),$(PADDLE))
	@echo $(abspath src) >$$($(VENV)/$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/penstock.pth
	@touch $@

$(VENV)/.beside-ray: pyproject.toml | $(VENV)/.core
	@echo "Installing Ray"
	@$(PYTHON) -m venv $(VENV)/ray
	@$(PY) tools/requirements.py project test ray >$(VENV)/ray/requirements.txt
	@$(call PIP_OF,$(VENV)/ray/bin/python) -r $(VENV)/ray/requirements.txt $(TORCH)
	@echo $(abspath src) >$$($(VENV)/ray/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/penstock.pth
	@touch $@

# The package of the server needs NumPy < 2; NumPy and Pillow are for its models.
$(VENV)/.beside-triton: | $(VENV)/.core
	@echo "Installing the Triton server"
	@$(PYTHON) -m venv $(VENV)/triton
	@$(call PIP_OF,$(VENV)/triton/bin/python) nvidia-pytriton "numpy<2" pillow
	@touch $@

# Not all that `test` needs exists for a Python without the GIL.
$(VENV)/.threads: pyproject.toml Makefile | $(VENV)/.core
	@$(PIP) pytest hypothesis scipy pillow
	@touch $@

$(VENV)/.beside-site: pyproject.toml | $(VENV)/.core
	@echo "Installing the site's generator"
	@$(PYTHON) -m venv $(VENV)/site
	@$(PY) tools/requirements.py site >$(VENV)/site/requirements.txt
	@$(call PIP_OF,$(VENV)/site/bin/python) -r $(VENV)/site/requirements.txt
	@touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/.core
	@echo "Installing the requirements of '$*'"
	@$(call INSTALL,$*)
	@touch $@
