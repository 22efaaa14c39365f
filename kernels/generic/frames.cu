// SPDX-License-Identifier: Apache-2.0
// form: own
#include "core/gpu_segments.h"
#include "core/gpu_units.h"
#include "generic/frames.h"

template <class U>
DEVICE void frames_sample(const Tensor &out, const Tensor &in, const FramesArgs &a) {
  const uint32_t frame = (uint32_t)(frame_bytes(in) / sizeof(U));
  const uint32_t total = frame * (uint32_t)a.count;
  U *to = (U *)out.data;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const uint32_t f = i / frame;
    to[i] = unit_at<U>(in.data, (int64_t)a.order[f] * frame + (i - f * frame));
  }
}

// Small frames. BYTES divides all of them. External memory may have any alignment: if it is not aligned to BYTES,
// elements of SIZE bytes are copied.
template <int BYTES, int SIZE>
DEVICE void frames_all(const Launch &l) {
  typedef typename UnitOf<BYTES>::type U;
  FOR_SAMPLES(sample, l) {
    const FramesArgs a = ((const FramesArgs *)l.args[0])[sample];
    const Tensor out = l.tensors[0][sample], in = l.tensors[1][sample];
    if (is_aligned<U>(out.data) && is_aligned<U>(in.data))
      frames_sample<U>(out, in, a);
    else
      frames_sample<typename UnitOf<SIZE>::type>(out, in, a);
  }
}

// Large frames.
template <class T, int G, int THREADS, int U, int PIECE>
DEVICE void frames_segments(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const FramesArgs a = ((const FramesArgs *)l.args[0])[sample];
    T *const to = (T *)l.tensors[0][sample].data;
    const Tensor in = l.tensors[1][sample];
    const uint32_t frame = (uint32_t)(frame_bytes(in) / (int64_t)sizeof(T));
    copy_segments<T, G, THREADS, U, PIECE>((uint32_t)a.count, frame, [&](uint32_t i) {
      return Segment<T>{to + (int64_t)i * frame, (const T *)in.data + (int64_t)load(a.order + i) * frame, frame};
    });
  }
}
