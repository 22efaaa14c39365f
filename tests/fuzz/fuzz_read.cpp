// SPDX-License-Identifier: Apache-2.0
// Damages real files and records, and lets the parsers of data formats loose on them, under AddressSanitizer. Built and
// run by fuzz_read.py.
//
//   fuzz_read FORMAT LIMIT SEED FILE...
#include <string>

#include "core/memory.h"
#include "one_sample.h"
#include "read/caffe.h"
#include "read/caffe2.h"
#include "read/coco.h"
#include "read/coco_scan.h"
#include "read/crc32c.h"
#include "read/decompress.h"
#include "read/fits.h"
#include "read/lmdb.h"
#include "read/mds.h"
#include "read/mds_scan.h"
#include "read/nemo_scan.h"
#include "read/npy.h"
#include "read/parquet.h"
#include "read/record_scan.h"
#include "read/recordio.h"
#include "read/tar.h"
#include "read/tf_example.h"
#include "read/wds_scan.h"
#include "read/webdataset.h"

extern "C" {
int webdataset(Sample *sample, const void *args, char *error);
int coco(Sample *sample, const void *args, char *error);
int npy(Sample *sample, const void *args, char *error);
int caffe(Sample *sample, const void *args, char *error);
int caffe2(Sample *sample, const void *args, char *error);
int tf_example(Sample *sample, const void *args, char *error);
int recordio(Sample *sample, const void *args, char *error);
int fits(Sample *sample, const void *args, char *error);
int mds(Sample *sample, const void *args, char *error);
}

// Objects of URLs are left out of this program.
std::shared_ptr<Object> open_remote(const char *, Storage::Way) { fail("URLs are not read here"); }

namespace {

template <class F>
bool scan(F f) {
  Table table{};
  const bool ok = !fill_table(&table, f);
  for (Column &c : table.columns) std::free(c.data);
  return ok;
}

bool try_coco(Memory &memory, Random &r, const File &f) {
  Table table{};
  CocoWish wish{0.1f, (int)(r() % 2), 1, 1};
  const bool ok = !fill_table(&table, [&](Table &t) { scan_coco(memory, wish, t); });
  if (ok && table[COCO_IMAGE].bytes) {
    // All objects in one image of a size that need not be theirs.
    const int64_t n = table[COCO_IMAGE].count<int32_t>(), first = 0;
    std::vector<int64_t> order(n);
    for (int64_t i = 0; i < n; i++) order[i] = n - 1 - i;
    const int32_t width = (int32_t)below(r, 700), height = (int32_t)below(r, 700), id = 1;
    CocoArgs a{};
    a.first = &first, a.count = &n, a.order = order.data(), a.width = &width, a.height = &height, a.id = &id;
    a.box = table[COCO_BOX].as<float>(), a.label = table[COCO_CATEGORY].as<int32_t>();
    a.polygon_end = table[COCO_POLYGON_END].as<int64_t>(), a.vertex_end = table[COCO_VERTEX_END].as<int64_t>();
    a.vertex = table[COCO_VERTEX].as<float>(), a.rle_end = table[COCO_RLE_END].as<int64_t>();
    a.rle_size = table[COCO_RLE_SIZE].as<int32_t>(), a.run_end = table[COCO_RUN_END].as<int64_t>();
    a.run = table[COCO_RUN].as<uint32_t>();
    a.has_polygons = (int)(r() % 2), a.has_masks = !a.has_polygons, a.ratio = (int)(r() % 2);
    parse(coco, &a, f, std::min<int64_t>(8, (int64_t)f.size()), a.has_polygons ? 5 : 4);
  }
  for (Column &c : table.columns) std::free(c.data);
  return ok;
}

// The features of the seeds, each as any kind of feature, of any shape.
bool try_tf_example(const File &f, Random &r) {
  static const char text[] = "ifs?default";
  static const int64_t kinds[] = {WantedFeature::kInt64, WantedFeature::kFloat, WantedFeature::kString};
  WantedFeature wanted[4]{};
  std::vector<Tensor> out(4);
  std::unique_ptr<char[]> dense[4];
  for (int k = 0; k < 4; k++) {
    WantedFeature &w = wanted[k];
    w.name = k, w.name_size = 1, w.kind = k < 3 && r() % 4 ? kinds[k] : below(r, 3), w.is_fixed = !below(r, 4),
    w.ndim = below(r, 3), w.volume = 1;
    for (int d = 0; d < w.ndim; d++) w.volume *= w.shape[d] = below(r, 4);
    if (w.kind == WantedFeature::kString) w.default_value = 4, w.default_size = 7;
    Tensor &t = out[k];
    t.dtype = w.kind == WantedFeature::kString ? UINT8 : w.kind == WantedFeature::kFloat ? FLOAT : INT64;
    const bool one_string = w.kind == WantedFeature::kString && w.is_fixed && w.volume == 1;
    t.ndim = one_string ? 1 : (int)w.ndim + !w.is_fixed + (w.kind == WantedFeature::kString);
    if (!w.is_fixed || w.kind == WantedFeature::kString) continue;
    std::copy_n(w.shape, w.ndim, t.shape);
    dense[k].reset(new char[w.volume * item_size(t.dtype)]());
    t.data = dense[k].get();
  }
  TfExampleArgs a{(const uint8_t *)text, (const int64_t *)wanted, 4, (int32_t)below(r, 2)};
  return parse(tf_example, &a, f, (int64_t)f.size(), 4, out);
}

// A sample of five columns, the last of which has four bytes; one of the others is taken as any kind of output.
bool try_mds(const File &f, Random &r) {
  static const int64_t sizes[] = {-1, -1, -1, -1, 4}, dtypes[] = {UINT8, FLOAT, INT64, -1};
  static const MdsKind kinds[] = {MDS_BYTES, MDS_ARRAY, MDS_ARRAY, MDS_PIL};
  MdsOutput wanted[2]{};
  MdsOutput &w = wanted[0];
  w.column = (int64_t)below(r, 4), w.kind = kinds[r() % 4 ? w.column : below(r, 4)];
  w.dtype = dtypes[r() % 4 ? 3 : below(r, 4)], w.ndim = r() % 4 ? -1 : (int64_t)below(r, 4);
  for (int d = 0; d < w.ndim; d++) w.shape[d] = 1 + (int64_t)below(r, 4);
  wanted[1].column = 4, wanted[1].kind = MDS_FIXED;
  int32_t fixed;
  std::vector<Tensor> out{Tensor{}, Tensor{&fixed, {1}, 1, INT32}};
  MdsArgs a{sizes, (const int64_t *)wanted, 5, 2};
  return parse(mds, &a, f, (int64_t)f.size(), 2, out);
}

// The pages of a column behind five bytes: codec, width, definition level and rows.
bool try_parquet(const File &f) {
  if (f.size() < 5) return false;
  const Memory pages(File(f.begin() + 5, f.end()));
  ParquetChunk c{pages.data(),      (int64_t)f.size() - 5, (uint8_t)f[3] | (uint8_t)f[4] << 8,
                 (uint8_t)f[0] % 3, (uint8_t)f[1] % 17,    (uint8_t)f[2] % 8};
  std::vector<uint64_t> address(c.n_rows);
  std::vector<int64_t> length(c.n_rows);
  ParquetValues v{address.data(), length.data(), nullptr, 0};
  bool ok = false;
  try {
    read_parquet_column(c, v);
    ok = true;
    for (int64_t i = 0; i < c.n_rows; i++)
      if (length[i] >= 0) read_all({(void *)address[i], {length[i]}, 1, UINT8});
  } catch (const ParquetUnknown &) {
  } catch (const std::exception &) {
  }
  memory_give(v.memory);
  return ok;
}

// Unpacked to as many bytes as the first two say.
bool try_snappy(const File &f) {
  if (f.size() < 2) return false;
  const int64_t room = (uint8_t)f[0] | (uint8_t)f[1] << 8;
  const Memory packed(File(f.begin() + 2, f.end()));
  const std::unique_ptr<char[]> to(new char[room]);
  try {
    unpack_snappy(packed.data(), (int64_t)f.size() - 2, to.get(), room);
  } catch (const std::exception &) {
    return false;
  }
  read_all({to.get(), {room}, 1, UINT8});
  return true;
}

bool try_one(const std::string &format, const File &f, Random &r) {
  Memory memory(f);
  if (format == "tfrecord") {
    scan([&](Table &t) { scan_tfrecord(memory, t); });
    return try_tf_example(f, r);
  }
  if (format == "recordio") {
    scan([&](Table &t) { scan_recordio(memory, t); });
    RecordioArgs a{};
    std::vector<Tensor> out(2);
    out[1].ndim = 1, out[1].dtype = FLOAT;
    return parse(recordio, &a, f, (int64_t)f.size(), 2, out);
  }
  if (format == "tar") {
    const bool ok = scan([&](Table &t) { scan_tar(memory, t); });
    scan([&](Table &t) { scan_wds_archive(memory, t); });
    WebdatasetArgs a{1};
    static const int dtypes[] = {UINT8, INT16, FLOAT, INT64};
    Tensor out{};
    out.dtype = dtypes[below(r, 4)];
    parse(webdataset, &a, f, (int64_t)below(r, f.size() + 1), 1, {out});
    return ok;
  }
  if (format == "wds_index") return scan([&](Table &t) { scan_wds_index(memory, t); });
  if (format == "nemo") {
    Table table{};
    const bool ok = !fill_table(&table, [&](Table &t) { scan_nemo(memory, t); });
    const bool some = ok && table[NEMO_OFFSET].bytes;
    for (Column &c : table.columns) std::free(c.data);
    return some;
  }
  if (format == "coco") return try_coco(memory, r, f);
  if (format == "lmdb") return scan([&](Table &t) { scan_lmdb(memory, t); });
  if (format == "npy") {
    NpyArgs a{};
    a.has_window = (int)(r() % 2), a.start_is = (int)below(r, 3), a.end_is = (int)below(r, 5);
    const int32_t counts[] = {(int)below(r, 4), (int)below(r, 4)};
    float start[8], end[8];
    int32_t start_at[8], end_at[8];
    a.start_count = &counts[0], a.end_count = &counts[1], a.n_axes = (int)below(r, 4), a.outside = (int)below(r, 3);
    a.start = start, a.end = end, a.start_at = start_at, a.end_at = end_at, a.n_rows = 1;
    for (int i = 0; i < 8; i++) {
      a.axes[i] = (int)below(r, 5) - 2, start[i] = (float)below(r, 100) / 80 - .1f;
      end[i] = (float)below(r, 100) / 80, start_at[i] = (int)below(r, 12) - 3, end_at[i] = (int)below(r, 12) - 1;
    }
    if (r() % 100 == 0) start_at[0] = INT32_MIN, end_at[0] = INT32_MAX, end[0] = 1e30f;
    a.fill_value = (float)below(r, 1000) - 500;
    const int64_t size = (int64_t)f.size();
    if (r() % 2) return parse(npy, &a, f, a.has_window ? std::min<int64_t>(size, 64) : size, 1);
    a.has_window = a.stays = 1;
    int64_t begin = -2;
    const bool ok = parse(npy, &a, f, std::min<int64_t>(size, 64), 2, {Tensor{}, Tensor{&begin, {1}, 1, INT64}});
    if (ok && (begin < -1 || begin > size)) abort();
    return ok;
  }
  if (format == "mds") {
    scan([&](Table &t) { scan_mds(memory, (int64_t)below(r, 5), t); });
    return try_mds(f, r);
  }
  if (format == "parquet") return try_parquet(f);
  if (format == "snappy") return try_snappy(f);
  if (format == "fits") {
    const int64_t hdus[] = {1 + (int64_t)below(r, 3), 2, 1 + (int64_t)below(r, 1000)}, dtypes[] = {-1, -1, -1};
    FitsArgs a{hdus, dtypes, 1 + (int)below(r, 2) + (r() % 50 == 0)};
    return parse(fits, &a, f, (int64_t)f.size(), a.n_outputs);
  }
  if (format == "caffe") {
    CaffeArgs a{(int)(r() % 2), (int)(r() % 2)};
    int32_t label = 0;
    Tensor fixed{&label, {1}, 1, INT32};
    std::vector<Tensor> out(a.has_image + a.has_label);
    if (a.has_label) out[a.has_image] = fixed;
    return parse(caffe, &a, f, (int64_t)f.size(), a.has_image + a.has_label, out);
  }
  if (format == "caffe2") {
    Caffe2Args a{(int)(r() % 2), (int)below(r, 5), (int)below(r, 12), (int)below(r, 3), (int)(r() % 2)};
    return parse(caffe2, &a, f, (int64_t)f.size(), a.has_image + (a.label_type != 4) + a.additional + a.has_bbox);
  }
  fprintf(stderr, "no format %s\n", format.c_str());
  exit(2);
}

// Else most headers would fail by their checksums.
void mend(const std::string &format, File &f, Random &r) {
  if (format == "tfrecord" && r() % 8 && f.size() >= 16) {
    const uint64_t length = f.size() - 16;
    uint32_t crc;
    memcpy(&f[0], &length, 8);
    crc = masked_crc32c(&f[0], 8), memcpy(&f[8], &crc, 4);
    crc = masked_crc32c(&f[12], (int64_t)length), memcpy(&f[12 + length], &crc, 4);
  }
  if (format == "tar" && r() % 4)
    for (size_t at = 0; at + 512 <= f.size(); at += 512) {
      if (memcmp(&f[at + 257], "ustar", 5)) continue;
      int sum = 8 * ' ';
      for (int i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? 0 : f[at + i];
      char text[8];
      snprintf(text, sizeof text, "%06o", sum & 0777777);
      memcpy(&f[at + 148], text, 8);
    }
}

}  // namespace

int main(int argc, char **argv) {
  const std::string format = argc > 1 ? argv[1] : "";
  int64_t inputs = 0, parsed = 0;
  const int status = fuzz(
      argc, argv, [&](const File &f, Random &r) { inputs++, parsed += try_one(format, f, r); },
      [&](File &f, Random &r) { mend(format, f, r); });
  printf("%s: %lld inputs, %lld of them parsed\n", format.c_str(), (long long)inputs, (long long)parsed);
  return status;
}
