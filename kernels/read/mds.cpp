// SPDX-License-Identifier: Apache-2.0
#include "read/mds.h"

#include "read/parser.h"

namespace {

// The type for the first byte of an array.
int dtype_of(int number) {
  switch (number) {
    case 8:
      return UINT8;
    case 9:
      return INT8;
    case 16:
      return UINT16;
    case 17:
      return INT16;
    case 18:
      return FLOAT16;
    case 32:
      return UINT32;
    case 33:
      return INT32;
    case 34:
      return FLOAT;
    case 64:
      return UINT64;
    case 65:
      return INT64;
    case 66:
      return FLOAT64;
  }
  fail("the array says that its elements have the type %d, which there is not", number);
}

// Describes `t`, whose type is known, as the rest of the column.
void give_values(Sample &sample, int k, const Part &rest) {
  Tensor &t = sample.out(k);
  const int64_t item = item_size(t.dtype), most = rest.size / item;
  int64_t n = 1;
  for (int d = 0; d < t.ndim; d++) {
    if (t.shape[d] < 0 || (n && t.shape[d] > most / n)) n = most + 1;  // too large to fit
    if (n > most) break;
    n *= t.shape[d];
  }
  if (n > most || n * item != rest.size)
    fail("output %d is an array of %d dimensions, of which the first is %lld, and has %lld bytes of elements of %lld",
         k, t.ndim, (long long)(t.ndim ? t.shape[0] : 1), (long long)rest.size, (long long)item);
  sample.give_elements(k, rest.data, rest.size);
}

void array(Sample &sample, int k, const MdsOutput &o, Part rest) {
  auto take = [&](int64_t n) {
    if (n > rest.size) fail("output %d has %lld bytes, too few for an array", k, (long long)rest.size);
    const uint8_t *at = (const uint8_t *)rest.data;
    rest = {rest.data + n, rest.size - n};
    return at;
  };
  Tensor &t = sample.out(k);
  t.dtype = o.dtype < 0 ? dtype_of(*take(1)) : (int)o.dtype;
  if (o.ndim >= 0) {
    t.ndim = (int)o.ndim;
    for (int d = 0; d < t.ndim; d++) t.shape[d] = o.shape[d];
  } else {
    // The number of dimensions; the last two bits are the type of the extents: uint8, uint16, uint32 or uint64.
    const uint8_t head = *take(1);
    const int width = 1 << (head & 3);
    if (head >> 2 > kMaxDims) fail("output %d has %d dimensions; at most %d are possible", k, head >> 2, kMaxDims);
    t.ndim = head >> 2;
    const uint8_t *extents = take((int64_t)t.ndim * width);
    for (int d = 0; d < t.ndim; d++) {
      uint64_t extent = 0;
      memcpy(&extent, extents + d * width, width);
      t.shape[d] = extent >> 62 ? -1 : (int64_t)extent;
    }
  }
  give_values(sample, k, rest);
}

// A Pillow image: width, height, length of the mode's name, that name, pixels.
void picture(Sample &sample, int k, const Part &column) {
  uint32_t head[3];
  if (column.size < (int64_t)sizeof head)
    fail("output %d has %lld bytes, too few for a picture", k, (long long)column.size);
  memcpy(head, column.data, sizeof head);
  const int64_t name = head[2], left = column.size - (int64_t)sizeof head - name;
  const char *mode = column.data + sizeof head;
  if (left < 0 || name > 8) fail("output %d is a picture with a mode whose name has %lld bytes", k, (long long)name);
  auto is = [&](const char *text) { return name == (int64_t)strlen(text) && !memcmp(mode, text, name); };
  const int channels = is("L") ? 1 : is("RGB") ? 3 : is("RGBA") ? 4 : 0;
  if (!channels) fail("output %d is a picture of the mode %.*s; L, RGB and RGBA can be read", k, (int)name, mode);
  Tensor &t = sample.out(k);
  t.dtype = UINT8, t.ndim = 3, t.shape[0] = head[1], t.shape[1] = head[0], t.shape[2] = channels;
  give_values(sample, k, {mode + name, left});
}

void parse(Sample &sample, const MdsArgs &a) {
  const Part record = sample.parts[0];
  Part *columns = (Part *)sample.scratch.array<Part>(a.n_columns);
  int64_t at = 0;
  for (int64_t c = 0; c < a.n_columns; c++) at += a.sizes[c] < 0 ? 4 : 0;
  if (at > record.size)
    fail("the sample has %lld bytes, fewer than the %lld that say how large its columns are", (long long)record.size,
         (long long)at);
  const char *size_at = record.data;
  for (int64_t c = 0; c < a.n_columns; c++) {
    int64_t size = a.sizes[c];
    if (size < 0) {
      uint32_t told;
      memcpy(&told, size_at, 4);
      size = told, size_at += 4;
    }
    if (size > record.size - at)
      fail("column %lld of the sample has %lld bytes, of which only %lld are there", (long long)c, (long long)size,
           (long long)(record.size - at));
    columns[c] = {record.data + at, size};
    at += size;
  }
  const MdsOutput *outputs = (const MdsOutput *)a.outputs;
  for (int k = 0; k < a.n_outputs; k++) {
    const Part &column = columns[outputs[k].column];
    switch (outputs[k].kind) {
      case MDS_FIXED:
        memcpy(sample.out(k).data, column.data, column.size);
        break;
      case MDS_ARRAY:
        array(sample, k, outputs[k], column);
        break;
      case MDS_PIL:
        picture(sample, k, column);
        break;
      default:
        sample.give(k, column.data, column.size);
    }
  }
}

}  // namespace

EXPORT_PARSER(mds, MdsArgs, parse)
