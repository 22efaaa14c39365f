// SPDX-License-Identifier: Apache-2.0
// form: pixels
// constants: from, to
#include "color/color_space.h"
#include "core/gpu_chain.h"

template <class To, class From, int from, int to>
struct ColorSpace : Local<To, From> {
  typedef ColorSpaceArgs Args;
  DEVICE void map(uint8_t (&out)[To::C], const uint8_t (&in)[From::C], int) const {
    if constexpr (From::C == 1 && To::C == 1) {
      out[0] = in[0];
    } else if constexpr (From::C == 1) {
      const bool chroma = to == YCBCR;
      out[0] = chroma ? gray_to_y(in[0]) : in[0];
      out[1] = out[2] = chroma ? 128 : in[0];
    } else if constexpr (To::C == 1) {
      if (from == YCBCR)
        out[0] = y_to_gray(in[0]);
      else
        out[0] = from == BGR ? rgb_to_gray(in[2], in[1], in[0]) : rgb_to_gray(in[0], in[1], in[2]);
    } else {
      uint8_t a = in[0], b = in[1], c = in[2];
      if (from == BGR) a = in[2], c = in[0];
      if (to == YCBCR && from != YCBCR) {
        const float red = a, green = b, blue = c;
        a = saturate<uint8_t>(rgb_to_y(red, green, blue)), b = saturate<uint8_t>(rgb_to_cb(red, green, blue)),
        c = saturate<uint8_t>(rgb_to_cr(red, green, blue));
      } else if (from == YCBCR && to != YCBCR) {
        const float y = a, cb = b, cr = c;
        a = saturate<uint8_t>(ycbcr_to_r(y, cb, cr)), b = saturate<uint8_t>(ycbcr_to_g(y, cb, cr)),
        c = saturate<uint8_t>(ycbcr_to_b(y, cb, cr));
      }
      const bool exchange = to == BGR;
      out[0] = exchange ? c : a, out[1] = b, out[2] = exchange ? a : c;
    }
  }
};
