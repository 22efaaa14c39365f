// SPDX-License-Identifier: Apache-2.0
#include "read/frames.h"

#include <utility>

#include "decode/decode.h"
#include "decode/image.h"

extern "C" int decode(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

FrameSize frame_size(const void *encoded, int64_t size, int32_t image_type, int64_t most) {
  const ImageInfo info = peek_image({(const uint8_t *)encoded, size});
  FrameSize s{info.height, info.width, image_type == ANY_DATA ? info.channels : image_type == GRAY ? 1 : 3};
  if (info.orientation >= 5) std::swap(s.height, s.width);
  const auto h = (long long)s.height, w = (long long)s.width;
  if (s.height * s.width > most) fail("it has %lld x %lld pixels; at most %lld are accepted", h, w, (long long)most);
  if (info.least_bytes > size)
    fail("it is truncated: its header promises %lld x %lld pixels, which take at least %lld bytes; there are %lld", h,
         w, (long long)info.least_bytes, (long long)size);
  return s;
}

void decode_frame(const void *encoded, int64_t size, int32_t image_type, FrameSize extents, uint8_t *pixels,
                  Scratch &scratch) {
  const ImageInfo info = peek_image({(const uint8_t *)encoded, size});
  Tensor out{pixels, {extents.height, extents.width, extents.channels}, 3, UINT8};
  const Tensor in{const_cast<void *>(encoded), {size}, 1, UINT8};
  const DecodeArgs args{0, 0, info.format, info.height, info.width, info.orientation, image_type, 1, 1, 0};
  char error[kErrorSize];
  if (decode(&out, &in, &args, &scratch, error)) fail("%s", error);
}
