// SPDX-License-Identifier: Apache-2.0
// What every .cu file includes: how a GPU kernel is written.
//
// kernels/<family>/<name>.cu is the GPU form of the kernel <name>; its first lines say which form it has:
//
//   // form: values    a LOCAL: each element by itself, coordinates unchanged (linear, cast)
//   // form: pixels    a LOCAL: the channels of a pixel together, coordinates unchanged (color_matrix)
//   // form: places    a LOCAL: elements come from other coordinates, or are filled (flip, window)
//   // form: gather    reads several elements at computed coordinates per element of its output (warp)
//   // form: block     computes tiles of its output with all threads of a block (resample)
//   // form: own       anything else; writes its outputs itself (normalize, transpose)
//
// Lines `key: value` come next and say what its launches depend on. They name fields of its arguments:
//
//   // form with one input: values     another form, for a single input
//   // constants: from, to             are compiled in, as they are the same for all samples
//   // axes: perm                      per output axis, its input axis
//   // begin: start - origin           per input axis, where reading begins within the part in memory
//   // border: border                  if not 0, neighbours may come from places that are not adjacent
//   // computes along: first, count    the first axis along which a head computes, and the number of these axes
//   // status: status                  where it writes a byte of 1 for a sample that it can't handle ("judged")
//   // joined: audio/spectrogram by audio/mel_spectrogram     that kernel does both if only it reads the output
//   of the first: it has the inputs of the first, and its arguments in l.args[1]; only values may follow it
//   // launch: f<To0::T>(l); 1024 elements of out[0] per block of 256 threads
//
// The last one is all that most block and own kernels need: the body of the launched function and how many elements, or
// bytes, of an output or input a block of threads takes. Other launches are planned by Python beside the kernel:
// <name>.py has plan(task), which returns a list of Phases (see penstock/gpu/launch.py).
//
// A launch is one gather, block or own kernel, or just a load, followed by LOCALs as one `Chain`. A thread starts at a
// place of the last output: `chain.locate` maps it back through all LOCALs to a place of the source (the first LOCAL's
// input); `chain.map` takes the source's values forward, each step rounding to its own type as if it had been written.
// So the results are those of one launch per operator.
//
// penstock/gpu/source.py writes the launched function: it includes the .cu files, names types (a `Kind` per tensor) and
// calls run_local<Source, Chain>(l), run_gather<Head, Chain>(l), or what a block or own kernel specifies, where
// `Chain`, `To0`.. (outputs) and `From0`.. (inputs) of the kernel are type names.
//
// l.tensors[0] is the last output, then come the head's further outputs, then its inputs, then tensors that are fused
// away (only their shapes mean something). l.args follow the order of the calls, the head first.
// A kernel's struct is a template called by its CamelCase name, over the Kinds of its output and its (first) input:
//
//   LOCAL:   template <class To, class From> struct X : Local<To, From> { typedef XArgs Args; ... };
//            see core/gpu_chain.h
//   Gather:  template <class To, class From> struct X { typedef XArgs Args;
//              DEVICE void begin(const Args &, const Tensor &out, const Tensor &in);
//              DEVICE void read(const int32_t (&at)[To::N], typename To::T (&pixel)[To::C]) const; };
//            constants are further int parameters of the template;
//            with `static constexpr int kInputs = 3`, begin gets the rows of two further inputs.
//   block:   how a chain is used shows run_local in core/gpu_local.h; `chain.region` takes a tile of the last output
//            back to the rectangle of the head's output that it needs. Then per place of the tile: chain.locate(at,
//            found); if (!found.filled) compute the head's pixel at `at`; chain.map(x, pixel, found); store x.
#pragma once
#include "core/convert.h"

#ifndef DEVICE
#define DEVICE __device__ __forceinline__
#endif
// Shared memory whose size the launch sets.
#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char dynamic_shared[]; \
  T *name = (T *)dynamic_shared
#endif

constexpr int kLaunchTensors = 16, kLaunchArgs = 12;

// The only argument of a launched function. Tensors and arguments have one row per sample.
struct Launch {
  const Tensor *tensors[kLaunchTensors];
  const void *args[kLaunchArgs];
  void *scratch;
  int32_t n, unused;
};

// What is known of a tensor when a launch is compiled. N coordinates address its elements. If kUnit, each place holds C
// elements, the channels of a pixel, along the tensor's axis kAxis; else C is 1, and kAxis is the channel axis or -1.
template <class T_, int N_, int C_, int AXIS, bool UNIT>
struct Kind {
  typedef T_ T;
  static constexpr int N = N_, C = C_, kAxis = AXIS;
  static constexpr bool kUnit = UNIT;
  static constexpr bool kInterleaved = !UNIT || AXIS == N_;  // the C elements are neighbours in memory
  // The axis of the tensor that coordinate d counts.
  DEVICE static constexpr int axis(int d) { return UNIT && d >= AXIS ? d + 1 : d; }
  DEVICE static int64_t extent(const Tensor &t, int d) { return axis(d) < t.ndim ? t.shape[axis(d)] : 1; }
};

// Like Tensor::volume, but loads the whole row at once.
DEVICE int64_t volume_of(const Tensor &t) {
  int64_t v = 1;
#pragma unroll
  for (int d = 0; d < kMaxDims; d++) v *= d < t.ndim ? t.shape[d] : 1;
  return v;
}

// Loads a value through the read-only cache.
template <class T>
DEVICE T load(const T *p) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8) {
    long long v = __ldg((const long long *)p);
    return *(T *)&v;
  } else if constexpr (sizeof(T) == 4) {
    int v = __ldg((const int *)p);
    return *(T *)&v;
  } else if constexpr (sizeof(T) == 2) {
    short v = __ldg((const short *)p);
    return *(T *)&v;
  } else {
    signed char v = __ldg((const signed char *)p);
    return *(T *)&v;
  }
#else
  return *p;
#endif
}

// Where the elements of a tensor lie.
template <class K>
struct Place {
  typedef typename K::T T;
  T *data;
  int64_t step[K::N];  // elements per step of a coordinate
  int64_t channel;     // elements between channels
  DEVICE void begin(const Tensor &row) {
    const Tensor t = row;
    data = t.as<T>();
    int64_t n = 1;
    channel = 1;
    for (int d = K::N - (K::kUnit ? 0 : 1); d >= 0; d--) {
      if (K::kUnit && d == K::kAxis)
        channel = n;
      else
        step[K::kUnit && d > K::kAxis ? d - 1 : d] = n;
      n *= d < t.ndim ? t.shape[d] : 1;
    }
    if constexpr (K::kUnit && K::kInterleaved) step[K::N - 1] = K::C, channel = 1;
  }
  DEVICE T *at(const int32_t (&i)[K::N]) const {
    T *p = data;
#pragma unroll
    for (int d = 0; d < K::N - 1; d++) p += i[d] * step[d];
    if constexpr (K::kInterleaved) return p + (int64_t)i[K::N - 1] * K::C;
    return p + i[K::N - 1];
  }
};

// Every kernel begins with this loop: sample blockIdx.y, then on by gridDim.y if there are more samples.
#define FOR_SAMPLES(s, l) for (int s = blockIdx.y; s < (l).n; s += gridDim.y)
