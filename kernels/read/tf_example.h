// SPDX-License-Identifier: Apache-2.0
// A record of a TFRecord file: its checksums, and the features of the tf.Example in it that were asked for.
#pragma once
#include <cstdint>

#include "core/tensor.h"

struct TfExampleArgs {
  const uint8_t *text;      // names and default strings
  const int64_t *features;  // (n, 16) struct WantedFeature
  int64_t n_features;
  int32_t verifies;  // checksums
};

// An output. Where a feature lacks values a fixed one has its default, another one has no elements.
struct WantedFeature {
  enum Kind : int64_t { kInt64, kString, kFloat };
  int64_t name, name_size;  // in `text`
  int64_t kind, is_fixed;
  int64_t volume;  // of the shape: all values of a fixed feature, those of one element of another
  int64_t ndim, shape[kMaxDims];
  // A number's bits, or where the string lies in `text` and its size.
  int64_t default_value, default_size;
};
