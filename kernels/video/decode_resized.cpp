// SPDX-License-Identifier: Apache-2.0
#include "video/decode_resized.h"

#include <algorithm>

#include "core/kernel.h"
#include "resample/taps.h"
#include "video/colors.h"
#include "video/wanted.h"

extern "C" int resample(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

namespace {

constexpr int kWindowPart = 2;  // of scratch memory: conversion and resampling use the others

ResampleArgs resample_args(const DecodeResizedArgs &a) {
  ResampleArgs r{};
  for (int d = 0; d < 2; d++) {
    r.roi_start[d] = a.roi_start[d], r.roi_end[d] = a.roi_end[d];
    r.in_size[d] = a.in_size[d], r.out_size[d] = a.out_size[d];
    r.in_origin[d] = a.in_origin[d], r.out_origin[d] = a.out_origin[d];
  }
  r.n_axes = 2;
  r.min_filter = a.min_filter, r.mag_filter = a.mag_filter, r.antialias = a.antialias, r.rule = a.rule;
  return r;
}

// Runs of rows of the window that count: from, to. Without antialiasing a smaller picture is made of some rows only.
std::vector<std::pair<int64_t, int64_t>> rows_of(const ResampleArgs &a, int64_t rows, int64_t n) {
  std::vector<bool> counts((size_t)rows, a.rule != DALI_RULE);
  if (a.rule == DALI_RULE) {
    const Taps &t = taps_for(1, resample_axis(a, 0), a.in_origin[0], rows, a.out_origin[0], n);
    for (int y = 0; y < t.n; y++)
      for (int k = 0; k < t.k; k++)
        if (t.weights[(size_t)(y * t.stride + k)] != 0) counts[(size_t)(t.first[(size_t)y] + k)] = true;
  }
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (int64_t y = 0; y < rows; y++) {
    if (!counts[(size_t)y]) continue;
    if (!runs.empty() && runs.back().second == y)
      runs.back().second++;
    else
      runs.emplace_back(y, y + 1);
  }
  return runs;
}

Tensor tensor_of(void *data, int64_t height, int64_t width, int32_t dtype) {
  Tensor t{};
  t.data = (decltype(t.data))data;
  t.shape[0] = height, t.shape[1] = width, t.shape[2] = 3;
  t.ndim = 3, t.dtype = (decltype(t.dtype))dtype;
  return t;
}

void run(const Tensor *out, const Tensor *in, const DecodeResizedArgs &a, Scratch &scratch) {
  const int64_t height = out->shape[1], width = out->shape[2];
  const int64_t size = height * width * 3 * (out->dtype == FLOAT ? (int64_t)sizeof(float) : 1);
  if (out->volume() == 0) return;
  const ResampleArgs resampling = resample_args(a);
  const int64_t rows = a.window[0], columns = a.window[1];
  uint8_t *const window = scratch.array<uint8_t>(rows * columns * 3, kWindowPart);
  // What does not count is never looked at as a value, but may be multiplied by zero.
  const auto runs = rows_of(resampling, rows, height);
  if (runs.size() != 1 || runs[0] != std::make_pair((int64_t)0, rows)) memset(window, 0, (size_t)(rows * columns * 3));
  const auto resize_to = [&](uint8_t *to) {
    Tensor from = tensor_of(window, rows, columns, UINT8), resized = tensor_of(to, height, width, (int32_t)out->dtype);
    char error[kErrorSize];
    if (resample(&resized, &from, &resampling, &scratch, error)) fail("%s", error);
  };
  const VideoIndex &index = *(const VideoIndex *)a.index;
  give_frames(
      {in->as<uint8_t>(), in->volume()}, index, a.frames, out->shape[0], out->as<uint8_t>(), size,
      [&](uint8_t *to) {
        fill_pixels(window, rows * columns, a.fill);
        resize_to(to);
      },
      [&](const Picture &picture, uint8_t *to) {
        for (const auto &[first, end] : runs)
          picture_to_pixels(picture, a.as_ycbcr, a.in_origin[0] + first, a.in_origin[1], end - first, columns,
                            window + first * columns * 3, scratch);
        resize_to(to);
      });
}

}  // namespace

EXPORT_KERNEL(decode_resized, DecodeResizedArgs, run)
