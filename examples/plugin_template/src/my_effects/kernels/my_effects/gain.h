// All values times a number.
#pragma once
#include "core/convert.h"

// The fields are filled from what `Gain.params` returns.
struct GainArgs {
  float gain;
};

// For the CPU and the GPU.
template <class T>
SHARED T times_gain(T x, float gain) {
  return saturate<T>((float)x * gain);
}
