// SPDX-License-Identifier: Apache-2.0
#include "read/caffe2.h"

#include <cmath>

#include "read/parser.h"
#include "read/protobuf.h"

namespace {

enum LabelType { kSingle, kSparse, kDense, kWeighted, kNone };
enum DataType { kFloat = 1, kInt32 = 2, kByte = 3, kString = 4, kInt64 = 10 };
enum Field {
  kDims = 1,
  kDataType = 2,
  kFloatData = 3,
  kInt32Data = 4,
  kByteData = 5,
  kStringData = 6,
  kInt64Data = 10
};
constexpr int kMostTensors = 64;

// A message TensorProto. Its numbers may be packed or unpacked, in several pieces.
class Proto {
 public:
  void read(const char *data, int64_t size) {
    message_ = {data, size};
    Message m(data, size);
    while (m.next()) {
      switch (m.field) {
        case kDims:
          each(m, Message::kVarint, [&](uint64_t v) {
            if (n_dims < kMaxDims) dims[n_dims] = (int64_t)v;
            n_dims++;
          });
          break;
        case kDataType:
          m.want(Message::kVarint);
          type = (int)m.number;
          break;
        case kByteData:
          m.want(Message::kBytes);
          bytes = {m.data, m.size};
          break;
        case kStringData:
          m.want(Message::kBytes);
          if (!text.data) text = {m.data, m.size};
          break;
      }
    }
  }
  // Calls f(bits) for each number of a field.
  template <class F>
  static void each(const Message &m, int wire, F f) {
    if (m.wire == wire) return f(m.number);
    m.want(Message::kBytes);
    Message packed(m.data, m.size);
    if (wire == Message::kFixed32) {
      if (m.size % 4) fail("field %d of a tensor has %lld bytes, no multiple of 4", m.field, (long long)m.size);
      for (int64_t i = 0; i < m.size; i += 4) {
        uint32_t bits;
        memcpy(&bits, m.data + i, 4);
        f(bits);
      }
    } else {
      while (!packed.at_end()) f(packed.varint());
    }
  }
  template <class F>
  void numbers(F f) const {
    const int field = type == kFloat ? kFloatData : type == kInt32 ? kInt32Data : kInt64Data;
    Message m(message_.data, message_.size);
    while (m.next())
      if (m.field == field) each(m, type == kFloat ? Message::kFixed32 : Message::kVarint, f);
  }
  int64_t count() const {
    int64_t n = 0;
    numbers([&](uint64_t) { n++; });
    return n;
  }
  static float as_float(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
  }

  int type = kFloat, n_dims = 0;
  int64_t dims[kMaxDims] = {};
  Part bytes{nullptr, 0}, text{nullptr, 0};

 private:
  Part message_{nullptr, 0};
};

// Output k receives the numbers of a tensor.
void give(Sample &sample, int k, const Proto &proto) {
  Tensor &t = sample.out(k);
  const int64_t n = proto.count();
  t.ndim = 1, t.shape[0] = n, t.dtype = proto.type == kFloat ? FLOAT : proto.type == kInt32 ? INT32 : INT64;
  t.data = sample.take(n ? n * item_size(t.dtype) : 1);
  int64_t i = 0;
  proto.numbers([&](uint64_t bits) {
    if (proto.type == kFloat)
      t.as<float>()[i] = Proto::as_float(bits);
    else if (proto.type == kInt32)
      t.as<int32_t>()[i] = (int32_t)bits;
    else
      t.as<int64_t>()[i] = (int64_t)bits;
    i++;
  });
}

// Output k is a vector of num_labels zeros, with ones, or weights, at the labels.
void give_sparse(Sample &sample, int k, const Proto &labels, const Proto *weights, int num_labels) {
  Tensor &t = sample.out(k);
  const bool floats = weights || labels.type == kFloat;
  t.ndim = 1, t.shape[0] = num_labels, t.dtype = floats ? FLOAT : INT32;
  t.data = sample.take(num_labels ? num_labels * 4 : 1);
  memset(t.data, 0, num_labels * 4);
  const int64_t n = labels.count();
  const float *weight = nullptr;
  if (weights) {
    const int64_t n_weights = weights->type == kFloat ? weights->count() : 0;
    if (weights->type != kFloat || n_weights < n)
      fail("there are %lld labels, but %lld weights of float32", (long long)n, (long long)n_weights);
    float *values = (float *)sample.take(n_weights ? n_weights * 4 : 1);
    int64_t i = 0;
    weights->numbers([&](uint64_t bits) { values[i++] = Proto::as_float(bits); });
    weight = values;
  }
  int64_t i = 0;
  labels.numbers([&](uint64_t bits) {
    const double value = labels.type == kFloat ? Proto::as_float(bits) : (int32_t)bits;
    if (!(value > -1 && value < num_labels && num_labels > 0))
      fail("label %g is not in 0 to num_labels - 1 = %d", value, num_labels - 1);
    const int64_t label = (int64_t)value;
    if (weight)
      t.as<float>()[label] = weight[i];
    else if (floats)
      t.as<float>()[label] = 1;
    else
      t.as<int32_t>()[label] = 1;
    i++;
  });
}

void give_image(Sample &sample, int k, const Proto &image) {
  if (image.type == kString) {
    if (!image.text.data) fail("the picture's tensor has no string_data");
    return sample.give(k, image.text.data, image.text.size);
  }
  if (image.type != kByte)
    fail("the picture's tensor has the type %d; 4 (STRING) and 3 (BYTE) are accepted", image.type);
  const int64_t h = image.dims[0], w = image.dims[1], c = image.n_dims == 3 ? image.dims[2] : 1;
  int64_t n;
  if ((image.n_dims != 2 && image.n_dims != 3) || h < 0 || w < 0 || c < 0 || __builtin_mul_overflow(h, w, &n) ||
      __builtin_mul_overflow(n, c, &n) || n != image.bytes.size)
    fail("the picture's tensor has %d dimensions, the first ones %lld x %lld, and %lld bytes of data", image.n_dims,
         (long long)h, (long long)w, (long long)image.bytes.size);
  Tensor &t = sample.out(k);
  t.ndim = 3, t.dtype = UINT8, t.data = const_cast<char *>(image.bytes.data);
  t.shape[0] = h, t.shape[1] = w, t.shape[2] = c;
}

void parse(Sample &sample, const Caffe2Args &a) {
  Message m(sample.parts[0].data, sample.parts[0].size);
  Proto protos[kMostTensors];
  int n = 0;
  while (m.next()) {
    if (m.field != 1) continue;
    m.want(Message::kBytes);
    if (n == kMostTensors) fail("the record has more than %d tensors", kMostTensors);
    protos[n++].read(m.data, m.size);
  }
  int next = 0, k = 0;
  auto take = [&](const char *what) -> const Proto & {
    if (next == n) fail("the record has %d tensors, none for %s", n, what);
    return protos[next++];
  };
  if (a.has_image) give_image(sample, k++, take("the picture"));
  if (a.label_type != kNone) {
    const Proto &labels = take("the labels");
    if (labels.type != kFloat && labels.type != kInt32)
      fail("the labels have the type %d; 1 (FLOAT) and 2 (INT32) are accepted", labels.type);
    if (a.label_type == kSparse || a.label_type == kWeighted) {
      const bool weighted = a.label_type == kWeighted;
      give_sparse(sample, k++, labels, weighted ? &take("the labels' weights") : nullptr, a.num_labels);
    } else {
      if (a.label_type == kSingle && labels.count() != 1)
        fail("the record has %lld labels; label_type=0 means exactly one", (long long)labels.count());
      give(sample, k++, labels);
    }
  }
  for (int i = 0; i < a.additional; i++) {
    const Proto &proto = take("the additional inputs");
    if (proto.type != kFloat && proto.type != kInt32 && proto.type != kInt64)
      fail("additional input %d has the type %d; 1 (FLOAT), 2 (INT32) and 10 (INT64) are accepted", i, proto.type);
    give(sample, k++, proto);
  }
  if (a.has_bbox) {
    const Proto &box = take("the box");
    if (box.type != kInt32 || box.count() != 4) fail("the box must be 4 numbers of INT32");
    give(sample, k++, box);
  }
}

}  // namespace

EXPORT_PARSER(caffe2, Caffe2Args, parse)
