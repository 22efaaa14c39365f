// SPDX-License-Identifier: Apache-2.0
// Colours of decoded images, on the CPU and the GPU.
#pragma once
#include "core/convert.h"

// The brightest value of a type.
template <class T>
struct Full {
  static constexpr float value = (float)Range<T>::hi;
};
template <>
struct Full<float> {
  static constexpr float value = 1.0f;
};

template <class T>
SHARED T rounded_up(float x) {
  if constexpr (IsFloat<T>::value)
    return x;
  else
    return (T)(x + 0.5f);
}

// ITU-R BT.601, eq. 2.5.1.
template <class T>
SHARED T luma(float r, float g, float b) {
  return rounded_up<T>(0.299f * r + 0.587f * g + 0.114f * b);
}

// ITU-R BT.601, 2.5.3: luma in 16..235 and colour differences in 16..240 of 255.
template <class T>
SHARED void ycbcr(T *out, float r, float g, float b) {
  constexpr float unit = Full<T>::value / 255;
  out[0] = rounded_up<T>(16 * unit + 0.25678823f * r + 0.50412941f * g + 0.09790588f * b);
  out[1] = rounded_up<T>(128 * unit - 0.14822290f * r - 0.29099279f * g + 0.43921569f * b);
  out[2] = rounded_up<T>(128 * unit + 0.43921569f * r - 0.36778831f * g - 0.07142737f * b);
}
