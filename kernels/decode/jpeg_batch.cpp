// SPDX-License-Identifier: Apache-2.0
// The host's part of a mixed decoder's batch, in few calls, which src/penstock/operators/decode/gpu/ makes.
#include <algorithm>

#include "core/driver.h"
#include "core/native_time.h"
#include "core/pool.h"
#include "decode/decode.h"
#include "decode/image.h"
#include "decode/jpeg_huffman.h"

EXPORT int32_t lay_out_batch(const int64_t *stored, int64_t n, int32_t ndim, int32_t dtype, int64_t guard, Tensor *rows,
                             int64_t *about);

namespace {

enum Engine : uint8_t { KERNELS = 1, HARDWARE = 2 };

// Whether the GPU's kernels can be tried: JPEG at full size with the exact DCT.
bool fits_kernels(const DecodeArgs &a, const int64_t *shape) {
  return a.format == FORMAT_JPEG && a.scale_denom == 1 && !a.fast_idct && a.output_type <= YCBCR &&
         (shape[2] == 1 || shape[2] == 3);
}

// Whether the JPEG engine can decode the file as requested: whole, upright, RGB or BGR.
bool fits_hardware(const DecodeArgs &a, const ImageInfo &info, const int64_t *shape) {
  return info.plain && info.orientation <= 1 && a.y == 0 && a.x == 0 && shape[0] == info.height &&
         shape[1] == info.width && a.scale_denom == 1 && !a.fast_idct;
}

int64_t bytes_of(const Tensor &t) { return t.volume() * item_size(t.dtype); }

// The argument of a GPU kernel: `struct Launch` of kernels/core/gpu.h.
struct GpuLaunch {
  uint64_t tensors[16], args[12], scratch;
  int32_t n, unused;
};

constexpr int kBlocksAGroup = 256, kPixelsAGroup = 8192;  // work per block of threads; see jpeg_pixels.cu
constexpr int64_t kMostGroups = 64;

uint32_t groups(int64_t work, int64_t of_a_group) {
  return (uint32_t)std::clamp<int64_t>((work + of_a_group - 1) / of_a_group, 1, kMostGroups);
}

}  // namespace

// Totals of a batch's pictures.
struct PictureTotals {
  int64_t out_bytes, dense;         // of one block for all pixels, as `lay_out_batch` returns
  int64_t same;                     // whether the shapes equal those of the batch before
  int64_t by_kernels, by_hardware;  // how many pictures they can decode
  int64_t file_bytes;
};

// Lays out the pixels of n pictures of the extents `shape` (n, 3), as `lay_out_batch` does, and sets the engines that
// can decode each (bits of `Engine`); HARDWARE only if `hardware`. `before` holds the extents of the batch before and
// is updated. Returns false if the size overflows.
EXPORT int32_t plan_pictures(const Tensor *files, int64_t n, const DecodeArgs *args, const ImageInfo *info,
                             const int64_t *shape, int32_t dtype, int32_t hardware, int64_t *before, Tensor *out,
                             uint8_t *engines, PictureTotals *totals) {
  NativeTime time;
  PictureTotals &t = *totals = {};
  if (!lay_out_batch(shape, n, 3, dtype, 0, out, &t.out_bytes)) return 0;
  const size_t bytes = sizeof(int64_t) * 3 * n;
  t.same = !memcmp(shape, before, bytes);
  if (!t.same) memcpy(before, shape, bytes);
  for (int64_t i = 0; i < n; i++) {
    const bool kernels = fits_kernels(args[i], shape + 3 * i);
    const bool engine = hardware && fits_hardware(args[i], info[i], shape + 3 * i);
    engines[i] = (kernels ? KERNELS : 0) | (engine ? HARDWARE : 0);
    t.by_kernels += kernels;
    t.by_hardware += engine;
    t.file_bytes += bytes_of(files[i]);
  }
  return 1;
}
EXPORT_SHORT(plan_pictures)

// Sets the place of each of n files' scans, after the first `begin` bytes of a block, and the address of its
// DecodeArgs. Returns the size of the block.
EXPORT int64_t plan_scans(const Tensor *files, int64_t n, const DecodeArgs *args, int64_t begin, JpegScanArgs *rows) {
  for (int64_t i = 0; i < n; i++) {
    rows[i].decode = (int64_t)(args + i);
    rows[i].data = begin;
    begin += (bytes_of(files[i]) + kScanSlack + 15) & ~15ll;
  }
  return begin;
}
EXPORT_SHORT(plan_scans)

// Launches the GPU's part of a batch on a stream, between two timed events. `out` are the rows of the outputs. Returns
// an error code of the driver.
EXPORT int32_t launch_scans(JpegScanBatch *batch, const Tensor *out, Driver::Handle stream, Driver::Handle begin,
                            Driver::Handle end) {
  JpegScanBatch &b = *batch;
  memcpy((char *)b.host + b.rows, out, sizeof(Tensor) * b.n);
  int64_t most_pixels = 0;
  for (int64_t i = 0; i < b.n; i++) most_pixels = std::max(most_pixels, out[i].shape[0] * out[i].shape[1]);

  GpuLaunch launch{};
  void *parameters[] = {&launch};
  launch.scratch = b.scratch, launch.n = (int32_t)b.n;
  int32_t code = 0;
  auto start = [&](int64_t kernel, uint32_t groups, uint32_t threads) {
    if (code) return;
    code =
        driver.launch((Driver::Handle)kernel, groups, (unsigned)b.n, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  };
  b.launched = 1;
  return timed([&] {
    code = driver.record(begin, stream);
    if (!code) code = driver.upload(b.device, (const void *)b.host, b.size, stream);
    launch.args[0] = b.device + b.huffman;
    start(b.entropy_kernel, 1, kEntropyThreads);
    launch.tensors[0] = b.device + b.rows;
    launch.args[0] = b.device + b.pixels;
    start(b.blocks_kernel, groups(b.most_blocks, kBlocksAGroup), 256);
    start(b.pixels_kernel, groups(most_pixels, kPixelsAGroup), 256);
    if (!code) code = driver.download((void *)(b.host + b.statuses), b.device + b.statuses, b.n, stream);
    if (!code) code = driver.record(end, stream);
    return code;
  });
}
EXPORT_SHORT(launch_scans)

// Runs `chain`, whose kernel is jpeg_scan, then launches the GPU's part, unless no picture was taken or the scratch is
// too small. Ignore the samples' status: `taken` counts.
EXPORT int32_t decode_scans(Pool *pool, const Chain *chain, JpegScanBatch *batch, const Tensor *out,
                            Driver::Handle stream, Driver::Handle begin, Driver::Handle end) {
  JpegScanBatch &b = *batch;
  b.wanted = b.taken = b.most_blocks = b.launched = 0;
  std::fill_n(chain->status, chain->n_rows, 0);
  {
    NativeTime time;
    pool->run(*chain);
  }
  return b.taken && b.wanted <= b.room ? launch_scans(batch, out, stream, begin, end) : 0;
}
EXPORT_LONG(decode_scans)

// Waits for an event after which n statuses are on the host. Returns an error code of the driver, or -1 if any status
// is not 0.
EXPORT int32_t wait_for_statuses(Driver::Handle event, const uint8_t *statuses, int64_t n) {
  const int32_t code = timed([&] { return driver.synchronize(event); });
  if (code) return code;
  return std::any_of(statuses, statuses + n, [](uint8_t s) { return s != 0; }) ? -1 : 0;
}
EXPORT_LONG(wait_for_statuses)
