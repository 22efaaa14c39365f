// SPDX-License-Identifier: Apache-2.0
// Power spectra along one axis.
#pragma once
#include "core/tensor.h"

struct PowerSpectrumArgs {
  int32_t axis, nfft, power;
};
