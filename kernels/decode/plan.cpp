// SPDX-License-Identifier: Apache-2.0
// Reads the headers of a whole batch and checks that its images can be decoded, before any pixel is touched.
#include "core/native_time.h"
#include "core/program.h"
#include "decode/image.h"

namespace {

void check(const ImageInfo &image, int64_t size, int64_t max_pixels) {
  const int64_t pixels = (int64_t)image.height * image.width;
  if (pixels > max_pixels)
    fail(
        "the image has %d x %d = %lld pixels, more than max_pixels=%lld allows; raise max_pixels if such images are "
        "meant",
        image.height, image.width, (long long)pixels, (long long)max_pixels);
  if (image.least_bytes > size)
    fail("truncated: the header promises %d x %d pixels, which take at least %lld bytes; there are %lld", image.height,
         image.width, (long long)image.least_bytes, (long long)size);
}

}  // namespace

// Reads the headers of n images into `info`, and the shapes of their pixels (height, width, channels) into `shape` (n,
// 3): oriented by EXIF if `oriented`, otherwise `info` loses its orientation; with `channels`, 0 for as many as stored.
// A negative `max_pixels` means no limit, for callers that don't decode. Returns how many can't be decoded; their
// format is 0 and kErrorSize bytes of reason are in `errors`, unless that is null.
EXPORT int64_t plan_images(const Tensor *in, int64_t n, int64_t max_pixels, int32_t oriented, int32_t channels,
                           ImageInfo *info, int64_t *shape, char *errors) {
  NativeTime time;
  int64_t failed = 0;
  for (int64_t i = 0; i < n; i++) {
    try {
      const int64_t size = in[i].volume() * item_size(in[i].dtype);
      info[i] = peek_image({in[i].as<const uint8_t>(), size});
      if (max_pixels >= 0) check(info[i], size, max_pixels);
    } catch (const std::exception &e) {
      info[i] = ImageInfo{};
      if (errors) snprintf(errors + i * kErrorSize, kErrorSize, "%s", e.what());
      failed++;
    }
    if (!oriented) info[i].orientation = 1;
    const bool turned = info[i].orientation >= 5;
    shape[3 * i] = turned ? info[i].width : info[i].height;
    shape[3 * i + 1] = turned ? info[i].height : info[i].width;
    shape[3 * i + 2] = channels ? channels : info[i].channels;
  }
  return failed;
}
EXPORT_LONG(plan_images)
EXPORT_INSTRUCTION(plan_images)
