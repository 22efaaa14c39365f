// SPDX-License-Identifier: Apache-2.0
// A record of a TFRecord file: its checksums, and the requested features of its tf.Example.
#pragma once
#include <cstdint>

#include "core/tensor.h"

struct TfExampleArgs {
  const uint8_t *text;      // names and default strings
  const int64_t *features;  // (n, 16) struct WantedFeature
  int64_t n_features;
  int32_t verifies;  // whether to verify checksums
};

// An output. If a feature has no values, a fixed one has its default, a variable one has no elements.
struct WantedFeature {
  enum Kind : int64_t { kInt64, kString, kFloat };
  int64_t name, name_size;  // in `text`
  int64_t kind, is_fixed;
  int64_t volume;  // of the shape: all values of a fixed feature, or one element of a variable one
  int64_t ndim, shape[kMaxDims];
  // The bits of a number, or offset in `text` and size of a string.
  int64_t default_value, default_size;
};
