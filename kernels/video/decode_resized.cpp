// SPDX-License-Identifier: Apache-2.0
#include "video/decode_resized.h"

#include <algorithm>

#include "color/interleave.h"
#include "core/kernel.h"
#include "resample/taps.h"
#include "video/colors.h"
#include "video/wanted.h"

extern "C" int resample(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

namespace {

constexpr int kWindowPart = 2;  // scratch part; conversion and resampling use the others

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

// Output rows [first, end), made of window rows [in_first, in_end).
struct Band {
  int64_t first, end, in_first, in_end;
};

// Which rows of the window are needed. Memory of a band stays in a core's cache from one step to the next.
struct RowPlan {
  std::vector<std::pair<int64_t, int64_t>> runs;  // of needed rows: begin, end
  std::vector<Band> bands;
  int64_t most = 0, most_out = 0;  // most window and output rows of a band
};

constexpr int64_t kBandBytes = 256 << 10;

// Without antialiasing a smaller picture needs only some rows.
RowPlan plan_rows(const ResampleArgs &a, int64_t rows, int64_t line, int64_t n) {
  if (a.rule != DALI_RULE) return {{{0, rows}}, {{0, n, 0, rows}}, rows, n};
  RowPlan plan;
  std::vector<bool> counts((size_t)rows);
  const Taps &t = taps_for(1, resample_axis(a, 0), a.in_origin[0], rows, a.out_origin[0], n);
  for (int64_t y = 0; y < t.n; y++) {
    int64_t first = rows, end = 0;
    for (int k = 0; k < t.k; k++) {
      const int64_t row = t.first[(size_t)y] + k;
      if (t.weights[(size_t)(y * t.stride + k)] == 0) continue;
      counts[(size_t)row] = true, first = std::min(first, row), end = std::max(end, row + 1);
    }
    if (first >= end) first = t.first[(size_t)y], end = first + 1;  // all weights are zero
    Band *last = plan.bands.empty() ? nullptr : &plan.bands.back();
    const int64_t from = last ? std::min(last->in_first, first) : 0, to = last ? std::max(last->in_end, end) : 0;
    if (last && (to - from) * line <= kBandBytes)
      *last = {last->first, y + 1, from, to};
    else
      plan.bands.push_back({y, y + 1, first, end});
  }
  for (const Band &b : plan.bands) {
    plan.most = std::max(plan.most, b.in_end - b.in_first);
    plan.most_out = std::max(plan.most_out, b.end - b.first);
  }
  for (int64_t y = 0; y < rows; y++) {
    if (!counts[(size_t)y]) continue;
    if (!plan.runs.empty() && plan.runs.back().second == y)
      plan.runs.back().second++;
    else
      plan.runs.emplace_back(y, y + 1);
  }
  return plan;
}

Tensor tensor_of(void *data, int64_t height, int64_t width, int64_t channels, int32_t dtype) {
  Tensor t{};
  t.data = (decltype(t.data))data;
  t.shape[0] = height, t.shape[1] = width, t.shape[2] = channels;
  t.ndim = 3, t.dtype = (decltype(t.dtype))dtype;
  return t;
}

void run(const Tensor *out, const Tensor *in, const DecodeResizedArgs &a, Scratch &scratch) {
  const int64_t height = out->shape[1], width = out->shape[2];
  const int64_t size = height * width * 3 * (out->dtype == FLOAT ? (int64_t)sizeof(float) : 1);
  if (out->volume() == 0) return;
  ResampleArgs resampling = resample_args(a);
  // Pairs of columns share chroma, so whole ones are converted.
  const int64_t first_column = a.in_origin[1] / 2 * 2, end_column = a.in_origin[1] + a.window[1];
  const int64_t columns = std::min((end_column + 1) / 2 * 2, a.in_size[1]) - first_column;
  resampling.in_origin[1] = first_column;
  // Bytes are converted and filtered faster in planes. Sums of numbers aren't, and nearest pixels are copied whole.
  const bool in_planes = out->dtype == UINT8 && a.rule == DALI_RULE && a.min_filter != NN && a.mag_filter != NN;
  const int64_t n_planes = in_planes ? 3 : 1, channels = 3 / n_planes;
  const int64_t line = columns * channels, out_line = size / height;
  const RowPlan plan = plan_rows(resampling, a.window[0], columns * 3, height);
  const int64_t plane = plan.most * line, out_plane = plan.most_out * width;
  uint8_t *const window = scratch.array<uint8_t>(n_planes * (plane + out_plane), kWindowPart);
  uint8_t *const small = window + n_planes * plane;
  memset(window, 0, (size_t)(n_planes * plane));  // unneeded rows may be multiplied by zero
  // `make_rows(first, end, to)` writes rows of the window.
  const auto resize_to = [&](uint8_t *to, const auto &make_rows) {
    const Band *before = nullptr;
    for (const Band &b : plan.bands) {
      int64_t made = b.in_first;
      if (before && before->in_first <= b.in_first && b.in_first < before->in_end) {
        made = std::min(before->in_end, b.in_end);
        for (uint8_t *p = window; p < small; p += plane)
          memmove(p, p + (b.in_first - before->in_first) * line, (size_t)((made - b.in_first) * line));
      }
      make_rows(made, b.in_end, window + (made - b.in_first) * line);
      before = &b;
      ResampleArgs r = resampling;
      r.in_origin[0] += b.in_first, r.out_origin[0] += b.first;
      uint8_t *const band = to + b.first * out_line;
      const int64_t out_rows = b.end - b.first;
      for (int64_t i = 0; i < n_planes; i++) {
        Tensor from = tensor_of(window + i * plane, b.in_end - b.in_first, columns, channels, UINT8);
        Tensor resized =
            tensor_of(in_planes ? small + i * out_plane : band, out_rows, width, channels, (int32_t)out->dtype);
        char error[kErrorSize];
        if (resample(&resized, &from, &r, &scratch, error)) fail("%s", error);
      }
      if (in_planes) interleave(small, small + out_plane, small + 2 * out_plane, out_rows * width, band);
    }
  };
  const VideoIndex &index = *(const VideoIndex *)a.index;
  give_frames(
      {in->as<uint8_t>(), in->volume()}, index, a.frames, out->shape[0], out->as<uint8_t>(), size,
      [&](uint8_t *to) {
        resize_to(to, [&](int64_t first, int64_t end, uint8_t *rows) {
          if (!in_planes) return fill_pixels(rows, (end - first) * columns, a.fill);
          for (int c = 0; c < 3; c++) memset(rows + c * plane, a.fill[c], (size_t)((end - first) * line));
        });
      },
      [&](const Picture &picture, uint8_t *to) {
        resize_to(to, [&](int64_t first, int64_t end, uint8_t *rows) {
          for (size_t i = 0; i < plan.runs.size(); i++) {
            const auto &[run_first, run_end] = plan.runs[i];
            const int64_t y = std::max(first, run_first), n = std::min(end, run_end) - y;
            if (n <= 0) continue;
            const int64_t next = run_end > end ? end : i + 1 < plan.runs.size() ? plan.runs[i + 1].first : 0;
            picture_to_pixels(picture, a.as_ycbcr, {a.in_origin[0] + y, first_column, n, columns},
                              {rows + (y - first) * line, line, in_planes ? plane : 0}, scratch, a.in_origin[0] + next);
          }
        });
      });
}

}  // namespace

EXPORT_KERNEL(decode_resized, DecodeResizedArgs, run)
