// SPDX-License-Identifier: Apache-2.0
// Runs one of the loops that have code for an instruction set, on numbers that are the same everywhere, and prints
// their name, the pixels of a round and a sum over what came out. For tests/arm and bench/neon.py, which compile it for
// two processors.
//   loops             prints the names
//   loops NAME ROUNDS
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "color/color_space.h"
#include "core/kernel.h"
#include "decode/idct.h"
#include "decode/upsample.h"
#include "decode/ycc.h"
#include "geometry/crop_mirror_normalize.h"
#include "geometry/warp.h"
#include "resample/resample.h"

extern "C" {
#define KERNEL(name) int name(Tensor *, const Tensor *, const void *, Scratch *, char *)
KERNEL(resample);
KERNEL(color_space);
KERNEL(crop_mirror_normalize);
KERNEL(warp);
}

namespace {

struct Numbers {  // a linear congruential generator's upper bits
  uint64_t state = 1;
  uint32_t next() { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); }
};

std::vector<uint8_t> bytes(size_t n) {
  Numbers r;
  std::vector<uint8_t> found(n);
  // Smooth, as pictures are, with some noise.
  for (size_t i = 0; i < n; i++) found[i] = (uint8_t)(i / 7 + r.next() % 64);
  return found;
}

uint64_t sum_of(const void *data, size_t n) {
  uint64_t h = 1469598103934665603u;  // FNV-1a
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)data)[i]) * 1099511628211u;
  return h;
}

Tensor tensor(void *data, DType dtype, std::initializer_list<int64_t> shape) {
  Tensor t{};
  t.data = data, t.dtype = dtype, t.ndim = (int32_t)shape.size();
  std::copy(shape.begin(), shape.end(), t.shape);
  return t;
}

// A round's pixels, and what makes `out`.
struct Loop {
  int64_t pixels;
  std::vector<uint8_t> out;
  std::function<void()> round;
};

void checked(int status, const char *error) {
  if (status) fprintf(stderr, "%s\n", error), exit(1);
}

Loop idct(int size) {
  constexpr int kBlocks = 256;
  Loop loop{kBlocks * size * size, std::vector<uint8_t>(kBlocks * size * size), {}};
  alignas(64) static int16_t blocks[kBlocks][64], emptied[64];
  static uint16_t quantisers[64];
  Numbers r;
  for (int i = 0; i < 64; i++) quantisers[i] = (uint16_t)(1 + i / 2);
  for (auto &block : blocks)
    for (int k = 0; k < 12; k++)
      block[(k * 9) % 64] = (int16_t)((int)(r.next() % 255) - 127);  // as in photographs, most of them are 0
  // Damaged data: numbers that overflow.
  for (int k = 0; k < 64; k++) blocks[7][k] = (int16_t)r.next(), blocks[8][k] = k < 8 ? (int16_t)r.next() : 0;
  loop.round = [=, out = loop.out.data()] {
    const InverseDct function = inverse_dct(size);
    for (int i = 0; i < kBlocks; i++) {
      memcpy(emptied, blocks[i], sizeof emptied);
      function(emptied, quantisers, out + i * size, kBlocks * size);
    }
  };
  return loop;
}

constexpr int kWidth = 1000;

Loop colours() {
  Loop loop{kWidth, std::vector<uint8_t>(3 * kWidth), {}};
  const auto in = bytes(3 * kWidth);
  loop.round = [in, out = loop.out.data()] {
    ycc_to_rgb(in.data(), in.data() + kWidth, in.data() + 2 * kWidth, kWidth, false, out);
  };
  return loop;
}

Loop upsampling(bool both) {
  Loop loop{2 * kWidth, std::vector<uint8_t>(2 * kWidth), {}};
  const auto in = bytes(2 * kWidth + 4);
  loop.round = [in, both, out = loop.out.data()] {
    both ? upsample_h2v2(in.data() + 1, in.data() + kWidth + 2, kWidth, out) : upsample_h2(in.data() + 1, kWidth, out);
  };
  return loop;
}

// Of the pixels that are made.
Loop resize(int filter, int rule, int channels, int from, int to) {
  const size_t n = (size_t)from * from * channels, m = (size_t)to * to * channels;
  Loop loop{(int64_t)to * to, std::vector<uint8_t>(m), {}};
  auto in = bytes(n);
  loop.round = [=, out = loop.out.data()]() mutable {
    ResampleArgs a{};
    for (int d = 0; d < 2; d++) a.roi_end[d] = from, a.in_size[d] = from, a.out_size[d] = to;
    a.first_axis = 0, a.n_axes = 2, a.min_filter = a.mag_filter = filter, a.antialias = 1, a.rule = rule;
    static Scratch scratch;
    char error[kErrorSize];
    Tensor y = tensor(out, UINT8, {to, to, channels});
    const Tensor x = tensor(in.data(), UINT8, {from, from, channels});
    checked(resample(&y, &x, &a, &scratch, error), error);
  };
  return loop;
}

constexpr int kSize = 224;

Loop normalise(DType dtype, bool planes, bool mirrored) {
  const size_t m = (size_t)kSize * kSize * 3 * item_size(dtype);
  Loop loop{kSize * kSize, std::vector<uint8_t>(m), {}};
  auto in = bytes((size_t)kSize * kSize * 3);
  loop.round = [=, out = loop.out.data()]() mutable {
    static const float mean[3] = {124, 116, 104}, scale[3] = {1 / 58.f, 1 / 57.f, 1 / 58.f}, fill[3] = {};
    CropMirrorNormalizeArgs a{};
    const int order[3] = {planes ? 2 : 0, planes ? 0 : 1, planes ? 1 : 2};
    for (int d = 0; d < 3; d++) a.axis[d] = order[d];
    a.mirrored = mirrored ? (planes ? 2 : 1) : -1, a.channels = planes ? 0 : 2;
    if (mirrored) a.first[a.mirrored] = kSize - 1;
    a.mean = mean, a.scale = scale, a.fill = fill;
    static Scratch scratch;
    char error[kErrorSize];
    Tensor y = planes ? tensor(out, dtype, {3, kSize, kSize}) : tensor(out, dtype, {kSize, kSize, 3});
    const Tensor x = tensor(in.data(), UINT8, {kSize, kSize, 3});
    checked(crop_mirror_normalize(&y, &x, &a, &scratch, error), error);
  };
  return loop;
}

Loop space(int from, int to) {
  Loop loop{kSize * kSize, std::vector<uint8_t>((size_t)kSize * kSize * (to == GRAY ? 1 : 3)), {}};
  auto in = bytes((size_t)kSize * kSize * 3);
  loop.round = [=, out = loop.out.data()]() mutable {
    ColorSpaceArgs a{from, to};
    static Scratch scratch;
    char error[kErrorSize];
    Tensor y = tensor(out, UINT8, {kSize, kSize, to == GRAY ? 1 : 3});
    const Tensor x = tensor(in.data(), UINT8, {kSize, kSize, 3});
    checked(color_space(&y, &x, &a, &scratch, error), error);
  };
  return loop;
}

Loop turned() {
  Loop loop{kSize * kSize, std::vector<uint8_t>((size_t)kSize * kSize * 3), {}};
  auto in = bytes((size_t)kSize * kSize * 3);
  loop.round = [=, out = loop.out.data()]() mutable {
    WarpArgs a{};
    const float matrix[6] = {0.9f, 0.1f, 3, -0.1f, 0.9f, 20};
    std::copy(matrix, matrix + 6, a.matrix);
    a.linear = 1, a.dims = 2, a.add_steps = 1;
    static Scratch scratch;
    char error[kErrorSize];
    Tensor y = tensor(out, UINT8, {kSize, kSize, 3});
    const Tensor x = tensor(in.data(), UINT8, {kSize, kSize, 3});
    checked(warp(&y, &x, &a, &scratch, error), error);
  };
  return loop;
}

const struct {
  const char *name;
  std::function<Loop()> make;
} kLoops[] = {
    {"decode: inverse DCT 8x8", [] { return idct(8); }},
    {"decode: inverse DCT 4x4", [] { return idct(4); }},
    {"decode: inverse DCT 2x2", [] { return idct(2); }},
    {"decode: YCbCr to RGB", colours},
    {"decode: chroma h2", [] { return upsampling(false); }},
    {"decode: chroma h2v2", [] { return upsampling(true); }},
    {"resize: linear, 500 to 224", [] { return resize(TRIANGULAR, DALI_RULE, 3, 500, 224); }},
    {"resize: linear, 160 to 224", [] { return resize(LINEAR, DALI_RULE, 3, 160, 224); }},
    {"resize: cubic, 500 to 224", [] { return resize(CUBIC, DALI_RULE, 3, 500, 224); }},
    {"resize: lanczos, 500 to 224", [] { return resize(LANCZOS3, DALI_RULE, 3, 500, 224); }},
    {"resize: linear, gray, 500 to 224", [] { return resize(TRIANGULAR, DALI_RULE, 1, 500, 224); }},
    {"resize: linear, RGBA, 500 to 224", [] { return resize(TRIANGULAR, DALI_RULE, 4, 500, 224); }},
    {"resize: Pillow's bilinear, 500 to 224", [] { return resize(LINEAR, PILLOW_RULE, 3, 500, 224); }},
    {"resize: torch's bilinear, 500 to 224", [] { return resize(LINEAR, TORCH_RULE, 3, 500, 224); }},
    {"pixels: normalise to float planes", [] { return normalise(FLOAT, true, false); }},
    {"pixels: mirror and normalise to float planes", [] { return normalise(FLOAT, true, true); }},
    {"pixels: normalise to half pixels", [] { return normalise(FLOAT16, false, false); }},
    {"pixels: RGB to gray", [] { return space(RGB, GRAY); }},
    {"pixels: RGB to YCbCr", [] { return space(RGB, YCBCR); }},
    {"pixels: YCbCr to RGB", [] { return space(YCBCR, RGB); }},
    {"pixels: rotate, linear", turned},
};

}  // namespace

int main(int argc, char **argv) {
  for (const auto &one : kLoops) {
    if (argc < 3) {
      puts(one.name);
    } else if (one.name == std::string(argv[1])) {
      Loop loop = one.make();
      for (int i = 0; i < atoi(argv[2]); i++) loop.round();
      printf("%lld %016llx\n", (long long)loop.pixels, (unsigned long long)sum_of(loop.out.data(), loop.out.size()));
    }
  }
}
