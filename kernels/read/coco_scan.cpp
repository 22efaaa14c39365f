// SPDX-License-Identifier: Apache-2.0
#include "read/coco_scan.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/native_time.h"
#include "read/json.h"

namespace {

constexpr int64_t kMostInt = INT32_MAX, kLeastInt = INT32_MIN;

class Scan {
 public:
  Scan(Object &input, const CocoWish &wish, Table &table) : json_(input), wish_(wish), table_(table) {}

  void run() {
    json_.open('{', "annotations of COCO are an object: '{' is expected");
    bool first = true, has_images = false, has_annotations = false;
    while (json_.next_key(first, key_)) {
      if (is("images")) {
        each("images", [&] { image(); });
        has_images = true;
      } else if (is("categories")) {
        each("categories", [&] { category(); });
      } else if (is("annotations")) {
        each("annotations", [&] { annotation(); });
        has_annotations = true;
      } else {
        json_.skip();
      }
    }
    if (!has_images || !has_annotations)
      fail_scan("the annotations have no '%s'; COCO's have 'images', 'annotations' and 'categories'",
                has_images ? "annotations" : "images");
  }

 private:
  // Calls f for each object of an array; other values are skipped.
  template <class F>
  void each(const char *name, F f) {
    json_.place = name;
    json_.open('[', "an array is expected");
    bool first = true;
    for (int64_t i = 0; json_.next_value(first); i++) {
      if (json_.peek() != '{') {
        json_.skip();
        continue;
      }
      json_.place.assign(name).append("[").append(std::to_string(i)).append("]");
      f();
    }
    json_.place.clear();
  }

  int32_t int32(const char *what) { return (int32_t)json_.integer(what, kLeastInt, kMostInt); }

  void image() {
    json_.open('{', "");
    bool first = true, has_id = false;
    int32_t id = 0, width = -1, height = -1;
    name_.clear();
    while (json_.next_key(first, key_)) {
      if (is("id"))
        id = int32("'id'"), has_id = true;
      else if (is("width"))
        width = int32("'width'");
      else if (is("height"))
        height = int32("'height'");
      else if (is("file_name"))
        json_.string(name_);
      else
        json_.skip();
    }
    if (!has_id) json_.fail_here("the image has no 'id'");
    if (name_.empty() || name_.find('\0') != name_.npos) json_.fail_here("the image has no 'file_name'");
    table_[COCO_IMAGE_ID].push(id);
    table_[COCO_IMAGE_WIDTH].push(width);
    table_[COCO_IMAGE_HEIGHT].push(height);
    table_[COCO_IMAGE_NAMES].append(name_.c_str(), (int64_t)name_.size() + 1);
    table_[COCO_IMAGE_NAME_END].push(table_[COCO_IMAGE_NAMES].bytes);
  }

  void category() {
    json_.open('{', "");
    bool first = true, has_id = false;
    while (json_.next_key(first, key_)) {
      if (is("id")) {
        table_[COCO_CATEGORY_ID].push(int32("'id'"));
        if (has_id) json_.fail_here("the category has two ids");
        has_id = true;
      } else {
        json_.skip();
      }
    }
    if (!has_id) json_.fail_here("the category has no 'id'");
  }

  void annotation() {
    json_.open('{', "");
    bool first = true, wanted = true, has_image = false, has_category = false, has_box = false;
    int32_t image = 0, category = 0;
    float box[4] = {};
    const int64_t before[] = {table_[COCO_VERTEX_END].bytes, table_[COCO_VERTEX].bytes, table_[COCO_RLE_SIZE].bytes,
                              table_[COCO_RUN_END].bytes, table_[COCO_RUN].bytes};
    auto drop_masks = [&] {
      table_[COCO_VERTEX_END].shorten(before[0]);
      table_[COCO_VERTEX].shorten(before[1]);
      table_[COCO_RLE_SIZE].shorten(before[2]);
      table_[COCO_RUN_END].shorten(before[3]);
      table_[COCO_RUN].shorten(before[4]);
    };
    while (json_.next_key(first, key_)) {
      if (is("image_id")) {
        image = int32("'image_id'"), has_image = true;
      } else if (is("category_id")) {
        category = int32("'category_id'"), has_category = true;
      } else if (is("iscrowd")) {
        wanted = wanted && (json_.integer("'iscrowd'", kLeastInt, kMostInt) == 0 || wish_.iscrowd);
      } else if (is("bbox")) {
        bbox(box), has_box = true;
      } else if (is("segmentation") && (wish_.polygons || wish_.rle)) {
        drop_masks();
        if (json_.peek() == '[' && wish_.polygons)
          polygons();
        else if (json_.peek() == '{' && wish_.rle)
          rle();
        else
          json_.skip();
      } else {
        json_.skip();
      }
    }
    if (!has_image || !has_category || !has_box)
      json_.fail_here(!has_image      ? "the annotation has no 'image_id'"
                      : !has_category ? "the annotation has no 'category_id'"
                                      : "the annotation has no 'bbox'");
    if (!(wanted && box[2] >= wish_.size_threshold && box[3] >= wish_.size_threshold)) {
      drop_masks();
      return;
    }
    table_[COCO_IMAGE].push(image);
    table_[COCO_CATEGORY].push(category);
    table_[COCO_BOX].append(box, sizeof box);
    if (wish_.polygons) table_[COCO_POLYGON_END].push(table_[COCO_VERTEX_END].count<int64_t>());
    if (wish_.rle) table_[COCO_RLE_END].push(table_[COCO_RUN_END].count<int64_t>());
  }

  void bbox(float *box) {
    json_.open('[', "'bbox' must be an array of 4 numbers");
    bool first = true;
    int n = 0;
    for (; json_.next_value(first); n++) {
      if (n == 4) json_.fail_here("'bbox' must have exactly 4 numbers, and has more");
      box[n] = (float)json_.number();
    }
    if (n != 4) json_.fail_here("'bbox' must have exactly 4 numbers, and has less");
  }

  void polygons() {
    json_.open('[', "");
    bool first = true;
    while (json_.next_value(first)) {
      json_.open('[', "'segmentation' must be an array of polygons, each an array of numbers");
      if (json_.numbers(table_[COCO_VERTEX]) % 2) json_.fail_here("a polygon must have an even number of coordinates");
      table_[COCO_VERTEX_END].push(table_[COCO_VERTEX].bytes / (int64_t)(2 * sizeof(float)));
    }
  }

  void rle() {
    json_.open('{', "");
    bool first = true, has_counts = false;
    int32_t size[2] = {-1, -1};
    const int64_t begin = table_[COCO_RUN].count<uint32_t>();
    while (json_.next_key(first, key_)) {
      if (is("size")) {
        json_.open('[', "'size' of a mask must be an array of height and width");
        bool first_number = true;
        int n = 0;
        for (; json_.next_value(first_number); n++) {
          if (n == 2) break;
          size[n] = (int32_t)json_.integer("'size' of a mask", 1, kMostInt);
        }
        if (n != 2) json_.fail_here("'size' of a mask must be an array of height and width");
      } else if (is("counts")) {
        if (has_counts) json_.fail_here("a mask has two 'counts'");
        has_counts = true;
        if (json_.peek() == '"')
          packed_runs();
        else
          plain_runs();
      } else {
        json_.skip();
      }
    }
    if (size[0] < 0) json_.fail_here("a mask has no 'size'");
    const int64_t end = table_[COCO_RUN].count<uint32_t>();
    if (end == begin) json_.fail_here("a mask has no 'counts'");
    int64_t pixels = 0;
    for (int64_t i = begin; i < end; i++) pixels += table_[COCO_RUN].as<uint32_t>()[i];
    if (pixels > (int64_t)size[0] * size[1]) json_.fail_here("the 'counts' of a mask have more pixels than its 'size'");
    table_[COCO_RLE_SIZE].append(size, sizeof size);
    table_[COCO_RUN_END].push(end);
  }

  void plain_runs() {
    json_.open('[', "'counts' of a mask must be a text or an array of integers");
    bool first = true;
    while (json_.next_value(first)) table_[COCO_RUN].push((uint32_t)json_.integer("'counts' of a mask", 0, UINT32_MAX));
  }

  // Groups of 5 bits, lowest first, each a character from '0' on with the continuation flag 0x20; from the fourth
  // number on, the difference to the second-last number is stored.
  void packed_runs() {
    json_.string(text_);
    const int64_t begin = table_[COCO_RUN].count<uint32_t>();
    for (size_t i = 0; i < text_.size();) {
      int64_t value = 0;
      int shift = 0;
      while (true) {
        if (i == text_.size() || text_[i] < 48 || text_[i] > 48 + 63 || shift > 50)
          json_.fail_here("'counts' of a mask is no run-length encoding of COCO");
        const int64_t bits = text_[i++] - 48;
        value |= (bits & 0x1f) << shift;
        shift += 5;
        if (bits & 0x20) continue;
        if (bits & 0x10) value -= (int64_t)1 << shift;
        break;
      }
      const int64_t n = table_[COCO_RUN].count<uint32_t>() - begin;
      if (n > 2) value += table_[COCO_RUN].as<uint32_t>()[begin + n - 2];
      if (value < 0 || value > UINT32_MAX) json_.fail_here("'counts' of a mask has a negative run");
      table_[COCO_RUN].push((uint32_t)value);
    }
  }

  bool is(std::string_view key) const { return key_ == key; }  // compares lengths first, unlike a std::string

  Json json_;
  const CocoWish &wish_;
  Table &table_;
  std::string key_, name_, text_;
};

}  // namespace

void scan_coco(Object &input, const CocoWish &wish, Table &table) {
  NativeTime time;
  Scan(input, wish, table).run();
}

EXPORT int coco_annotations(const char *path, float size_threshold, int32_t iscrowd, int32_t polygons, int32_t rle,
                            Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_coco(*object, {size_threshold, iscrowd, polygons, rle}, t);
  });
}
EXPORT_LONG(coco_annotations)
