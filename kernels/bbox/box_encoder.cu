// SPDX-License-Identifier: Apache-2.0
// form: own
#include "bbox/box_encoder.h"
#include "core/gpu.h"

DEVICE BoxEncoderArgs box_encoder_args(const Launch &l, int sample) {
  return ((const BoxEncoderArgs *)l.args[0])[sample];
}

DEVICE void box_with_area(const float *boxes, int64_t i, float (&box)[5]) {
  for (int d = 0; d < 4; d++) box[d] = load(boxes + 4 * i + d);
  box[4] = (box[2] - box[0]) * (box[3] - box[1]);
}

// If IoUs are equal, the later anchor wins.
DEVICE bool is_nearer(float iou, int32_t k, float than, int32_t at) { return iou > than || iou == than && k > at; }

// The nearest anchor of each box; one block per box. No sample has more than `most_boxes` boxes.
template <int THREADS>
DEVICE void box_encoder_nearest(const Launch &l, int most_boxes) {
  __shared__ float best_of[THREADS];
  __shared__ int32_t at_of[THREADS];
  const int thread = threadIdx.x;
  FOR_SAMPLES(sample, l) {
    const BoxEncoderArgs a = box_encoder_args(l, sample);
    const Tensor boxes = l.tensors[2][sample];
    const int64_t n_boxes = volume_of(boxes) / 4, n = a.n_anchors;
    for (int64_t i = blockIdx.x; i < n_boxes; i += gridDim.x) {
      float box[5], best = 0;
      box_with_area(boxes.as<float>(), i, box);
      int32_t at = (int32_t)n - 1;
      for (int64_t k = thread; k < n; k += THREADS) {
        const float *p = a.anchors + k;
        const float iou = overlap(box, load(p), load(p + n), load(p + 2 * n), load(p + 3 * n), load(p + 4 * n));
        if (iou > best || iou == best && iou > 0) best = iou, at = (int32_t)k;
      }
      best_of[thread] = best, at_of[thread] = at;
      for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && is_nearer(best_of[thread + half], at_of[thread + half], best_of[thread], at_of[thread]))
          best_of[thread] = best_of[thread + half], at_of[thread] = at_of[thread + half];
      }
      if (thread == 0) ((int32_t *)l.scratch)[(int64_t)sample * most_boxes + i] = at_of[0];
      __syncthreads();
    }
  }
}

// Matches a box to each anchor and encodes it; one thread per anchor.
DEVICE void box_encoder_encode(const Launch &l, int most_boxes) {
  FOR_SAMPLES(sample, l) {
    const BoxEncoderArgs a = box_encoder_args(l, sample);
    const Tensor rows = l.tensors[2][sample];
    const float *boxes = rows.as<float>();
    const int32_t n_boxes = (int32_t)(volume_of(rows) / 4);
    const int64_t n = a.n_anchors;
    const int32_t *nearest = (const int32_t *)l.scratch + (int64_t)sample * most_boxes;
    float4 *encoded = l.tensors[0][sample].as<float4>();
    int32_t *classes = l.tensors[1][sample].as<int32_t>();
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (int64_t)gridDim.x * blockDim.x) {
      const float *p = a.anchors + k;
      const float anchor[4] = {load(p), load(p + n), load(p + 2 * n), load(p + 3 * n)}, area = load(p + 4 * n);
      float best = 0;
      int32_t found = -1, forced = -1;
      for (int32_t i = 0; i < n_boxes; i++) {
        float box[5];
        box_with_area(boxes, i, box);
        const float iou = overlap(box, anchor[0], anchor[1], anchor[2], anchor[3], area);
        if (iou >= best) best = iou, found = i;
        if (nearest[i] == k) forced = i;
      }
      if (!(best > a.criteria)) found = -1;
      if (forced >= 0) found = forced;
      float box[5], out[4];
      if (found >= 0) box_with_area(boxes, found, box);
      encode(anchor, found >= 0 ? box : nullptr, a, out);
      encoded[k] = make_float4(out[0], out[1], out[2], out[3]);
      classes[k] = found >= 0 ? l.tensors[3][sample].as<int32_t>()[found] : 0;
    }
  }
}
