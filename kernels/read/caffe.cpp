// SPDX-License-Identifier: Apache-2.0
#include "read/caffe.h"

#include "read/parser.h"
#include "read/protobuf.h"

namespace {

enum Field { kChannels = 1, kHeight = 2, kWidth = 3, kData = 4, kLabel = 5, kFloatData = 6, kEncoded = 7 };

void parse(Sample &sample, const CaffeArgs &a) {
  Message m(sample.parts[0].data, sample.parts[0].size);
  const char *data = nullptr;
  int64_t size = 0, channels = 0, height = 0, width = 0;
  int32_t label = 0;
  bool has_label = false, has_floats = false, encoded = true;
  while (m.next()) {
    switch (m.field) {
      case kData:
        m.want(Message::kBytes);
        data = m.data, size = m.size;
        break;
      case kFloatData:
        has_floats = true;
        break;
      case kChannels:
      case kHeight:
      case kWidth:
        m.want(Message::kVarint);
        (m.field == kChannels ? channels : m.field == kHeight ? height : width) = (int32_t)m.number;
        break;
      case kLabel:
        m.want(Message::kVarint);
        label = (int32_t)m.number, has_label = true;
        break;
      case kEncoded:
        m.want(Message::kVarint);
        encoded = m.number != 0;
        break;
    }
  }
  int k = 0;
  if (a.has_image) {
    if (!data)
      fail(has_floats ? "the Datum has float_data, which can't be read; only data"
                      : "the Datum has no data; image_available=False leaves it out");
    if (encoded) {
      sample.give(k, data, size);
    } else {
      int64_t bytes;
      if (channels < 0 || height < 0 || width < 0 || __builtin_mul_overflow(height * width, channels, &bytes) ||
          bytes != size)
        fail("the Datum has %lld bytes of data for a picture of height %lld, width %lld and %lld channels",
             (long long)size, (long long)height, (long long)width, (long long)channels);
      Tensor &t = sample.out(k);
      t.ndim = 3, t.dtype = UINT8, t.data = const_cast<char *>(data);
      t.shape[0] = height, t.shape[1] = width, t.shape[2] = channels;
    }
    k++;
  }
  if (a.has_label) {
    if (!has_label) fail("the Datum has no label; label_available=False leaves it out");
    *sample.out(k).as<int32_t>() = label;
  }
}

}  // namespace

EXPORT_PARSER(caffe, CaffeArgs, parse)
