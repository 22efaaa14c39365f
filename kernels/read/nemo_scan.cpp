// SPDX-License-Identifier: Apache-2.0
#include "read/nemo_scan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/native_time.h"
#include "read/json.h"

namespace {

constexpr int64_t kMostLines = 1000;  // skipped lines to report at most

// Presents a line as an object, so that parsing stops at its end.
class Line : public Object {
 public:
  Line(const char *begin, const char *end) : begin_(begin), end_(end) {}
  int64_t length() override { return end_ - begin_; }
  int64_t read(int64_t offset, int64_t length, char *to) override {
    const int64_t n = std::max<int64_t>(std::min(length, end_ - begin_ - offset), 0);
    if (n) memcpy(to, begin_ + offset, n);
    return n;
  }

 private:
  const char *begin_, *end_;
};

struct Entry {
  std::string path, text;
  double offset = 0, duration = -1;
};

// If a key is repeated, the last one counts.
void read_entry(Entry &entry, const char *begin, const char *end) {
  Line line(begin, end);
  Json json(line);
  std::string key;
  bool first = true;
  entry.path.clear(), entry.text.clear();
  entry.offset = 0, entry.duration = -1;
  json.open('{', "an object, '{', is expected");
  while (json.next_key(first, key)) {
    json.place = key;
    if (key == "audio_filepath")
      json.string(entry.path);
    else if (key == "text")
      json.string(entry.text);
    else if (key == "offset")
      entry.offset = json.number();
    else if (key == "duration")
      entry.duration = json.number();
    else
      json.skip();
    json.place.clear();
  }
  if (entry.path.empty()) fail_scan("it has no 'audio_filepath'");
  if (entry.path.find('\0') != entry.path.npos) fail_scan("its 'audio_filepath' has a zero in it");
}

bool is_blank(const char *begin, const char *end) {
  return std::all_of(begin, end, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

}  // namespace

void scan_nemo(Object &input, Table &table) {
  NativeTime time;
  std::vector<char> bytes(input.length());
  bytes.resize(input.read(0, (int64_t)bytes.size(), bytes.data()));
  const char *at = bytes.data(), *const end = at + bytes.size();
  Entry entry;
  for (int64_t number = 1; at < end; number++) {
    const char *const next = std::find(at, end, '\n');
    try {
      if (!is_blank(at, next)) {
        read_entry(entry, at, next);
        table[NEMO_OFFSET].push(entry.offset);
        table[NEMO_DURATION].push(entry.duration);
        table[NEMO_PATHS].append(entry.path.data(), (int64_t)entry.path.size());
        table[NEMO_PATH_END].push(table[NEMO_PATHS].bytes);
        table[NEMO_TEXTS].append(entry.text.data(), (int64_t)entry.text.size());
        table[NEMO_TEXT_END].push(table[NEMO_TEXTS].bytes);
      }
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &e) {
      table[NEMO_BAD_LINE].push(number);
      if (table[NEMO_BAD_LINE].count<int64_t>() <= kMostLines) {
        table[NEMO_WHYS].append(e.what(), (int64_t)strlen(e.what()));
        table[NEMO_WHY_END].push(table[NEMO_WHYS].bytes);
      }
    }
    at = next == end ? end : next + 1;
  }
}

EXPORT int nemo_manifest(const char *path, Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_nemo(*object, t);
  });
}
EXPORT_LONG(nemo_manifest)
