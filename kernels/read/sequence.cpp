// SPDX-License-Identifier: Apache-2.0
#include "read/sequence.h"

#include <new>

#include "read/frames.h"
#include "read/parser.h"

namespace {

// Calls f(part, number) for each frame; adds the number to its errors.
template <class F>
void each_frame(const Sample &sample, F f) {
  for (int i = 0; i < sample.n_parts; i++) {
    try {
      f(sample.parts[i], i);
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &e) {
      fail("frame %d: %s", i, e.what());
    }
  }
}

void parse(Sample &sample, const SequenceArgs &a) {
  FrameSize size{};
  each_frame(sample, [&](const Part &part, int i) {
    const FrameSize own = frame_size(part.data, part.size, a.image_type, a.most_pixels);
    if (!i) size = own;
    if (own.height != size.height || own.width != size.width || own.channels != size.channels)
      fail("it has %lld x %lld pixels of %lld channels, frame 0 has %lld x %lld of %lld", (long long)own.height,
           (long long)own.width, (long long)own.channels, (long long)size.height, (long long)size.width,
           (long long)size.channels);
  });
  const int64_t bytes = size.height * size.width * size.channels;
  Tensor &out = sample.out(0);
  out.ndim = 4, out.dtype = UINT8;
  out.shape[0] = sample.n_parts, out.shape[1] = size.height, out.shape[2] = size.width, out.shape[3] = size.channels;
  out.data = sample.take(bytes * sample.n_parts);
  each_frame(sample, [&](const Part &part, int i) {
    decode_frame(part.data, part.size, a.image_type, size, out.as<uint8_t>() + i * bytes, sample.scratch);
  });
}

}  // namespace

EXPORT_PARSER(sequence, SequenceArgs, parse)
