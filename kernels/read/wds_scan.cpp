// SPDX-License-Identifier: Apache-2.0
#include "read/wds_scan.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/native_time.h"
#include "read/tar.h"

namespace {

// The base name ends at the first dot of the file name. Without a dot the name is both base and extension.
void split(std::string_view name, std::string_view &base, std::string_view &ext) {
  const size_t slash = name.rfind('/'), dot = name.find('.', slash == name.npos ? 0 : slash + 1);
  base = name.substr(0, dot);
  ext = dot == name.npos ? name : name.substr(dot + 1);
}

bool is_hidden(std::string_view base) { return base.empty() || base.back() == '/'; }

void push_member(Table &t, int64_t offset, int64_t size, std::string_view name, std::string_view ext) {
  t[WDS_OFFSET].push(offset);
  t[WDS_SIZE].push(size);
  t[WDS_NAMES].append(name.data(), (int64_t)name.size());
  t[WDS_NAME_END].push(t[WDS_NAMES].bytes);
  t[WDS_EXTS].append(ext.data(), (int64_t)ext.size());
  t[WDS_EXT_END].push(t[WDS_EXTS].bytes);
}

// Words of a line, separated by blanks.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  bool next(std::string_view &word) {
    size_t begin = rest_.find_first_not_of(" \t\r");
    if (begin == rest_.npos) return false;
    size_t end = rest_.find_first_of(" \t\r", begin);
    word = rest_.substr(begin, end - begin);
    rest_ = end == rest_.npos ? std::string_view() : rest_.substr(end);
    return true;
  }
  // A number of at most 18 digits.
  bool next(int64_t &number) {
    std::string_view word;
    if (!next(word) || word.size() > 18) return false;
    number = 0;
    for (char c : word) {
      if (c < '0' || c > '9') return false;
      number = number * 10 + (c - '0');
    }
    return true;
  }
  // A name, which may contain blanks: it ends with its extension.
  bool next_name(std::string_view &name, std::string_view ext) {
    std::string_view word;
    if (!next(name)) return false;
    const std::string_view one_word = name, after_one_word = rest_;
    auto complete = [&] { return name.size() >= ext.size() && name.substr(name.size() - ext.size()) == ext; };
    while (!complete() && next(word)) name = {name.data(), (size_t)(word.data() + word.size() - name.data())};
    if (!complete()) name = one_word, rest_ = after_one_word;
    return true;
  }

 private:
  std::string_view rest_;
};

[[noreturn]] void fail_line(int64_t line, const char *what) {
  fail_scan("line %lld of the index file %s", (long long)line, what);
}

}  // namespace

void scan_wds_archive(Object &input, Table &table) {
  Table members;
  if (fill_table(&members, [&](Table &t) { scan_tar(input, t); })) throw std::runtime_error(members.error);
  const int64_t n = members[TAR_OFFSET].count<int64_t>();
  const int64_t *offset = members[TAR_OFFSET].as<int64_t>(), *size = members[TAR_SIZE].as<int64_t>(),
                *end = members[TAR_NAME_END].as<int64_t>();
  std::string_view names(members[TAR_NAMES].data, members[TAR_NAMES].bytes), last;
  bool first = true;
  for (int64_t i = 0, begin = 0; i < n; begin = end[i++]) {
    std::string_view name = names.substr(begin, end[i] - begin), base, ext;
    split(name, base, ext);
    if (is_hidden(base)) continue;
    if (!first && base != last) table[WDS_SAMPLE_END].push(table[WDS_OFFSET].count<int64_t>());
    first = false, last = base;
    push_member(table, offset[i], size[i], name, ext);
  }
  if (!first) table[WDS_SAMPLE_END].push(table[WDS_OFFSET].count<int64_t>());
  for (Column &c : members.columns) std::free(c.data);
}

void scan_wds_index(Object &input, Table &table) {
  std::vector<char> bytes(input.length());
  bytes.resize(input.read(0, (int64_t)bytes.size(), bytes.data()));
  std::string_view text(bytes.data(), bytes.size());
  auto next_line = [&](std::string_view &line) {
    if (text.empty()) return false;
    const size_t end = text.find('\n');
    line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    return true;
  };
  std::string_view line, version;
  if (!next_line(line)) fail_scan("the index file is empty; wds2idx makes it");
  Words head(line);
  if (!head.next(version) || (version != "v1.0" && version != "v1.1" && version != "v1.2"))
    fail_line(1, "must begin with its version, v1.0, v1.1 or v1.2; wds2idx makes such files");
  const bool has_names = version == "v1.2";
  int64_t samples;
  if (!head.next(samples) || samples < 1) fail_line(1, "must say how many samples follow, at least 1");
  for (int64_t i = 0; i < samples; i++) {
    if (!next_line(line))
      fail_scan("the index file ends after %lld of the %lld samples that its first line promises", (long long)i,
                (long long)samples);
    Words words(line);
    std::string_view ext, name;
    int64_t offset, size, members = 0;
    for (; words.next(ext); members++) {
      if (!words.next(offset) || !words.next(size) || (has_names && !words.next_name(name, ext)))
        fail_line(i + 2,
                  has_names ? "must be made of: extension offset size name" : "must be made of: extension offset size");
      if (offset % kTarBlock || !offset)
        fail_line(i + 2, "has an offset that is no multiple of 512; is it behind the size?");
      push_member(table, offset, size, name, ext);
    }
    if (!members) fail_line(i + 2, "has no members of a sample");
    table[WDS_SAMPLE_END].push(table[WDS_OFFSET].count<int64_t>());
  }
}

EXPORT int wds_archive(const char *path, Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_wds_archive(*object, t);
  });
}
EXPORT_LONG(wds_archive)

EXPORT int wds_index(const char *path, Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_wds_index(*object, t);
  });
}
EXPORT_LONG(wds_index)

// For each sample and output, the number of its member, -1 if there is none: the first one whose extension is among
// those of the output. `wanted` holds n_wanted zero-terminated extensions; `outputs` gives the output of each.
EXPORT void wds_match(int64_t n_samples, const int64_t *sample_end, const int64_t *ext_end, const char *exts,
                      int64_t n_wanted, const char *wanted, const int64_t *outputs, int64_t n_outputs,
                      int32_t case_sensitive, int64_t *member) {
  NativeTime time;
  auto folded = [&](std::string_view ext) {
    std::string s(ext);
    if (!case_sensitive)
      for (char &c : s)
        if (c >= 'A' && c <= 'Z') c = (char)(c + 32);
    return s;
  };
  std::unordered_map<std::string, std::vector<int64_t>> to;
  for (int64_t i = 0; i < n_wanted; i++) {
    to[folded(wanted)].push_back(outputs[i]);
    wanted += strlen(wanted) + 1;
  }
  for (int64_t s = 0, m = 0; s < n_samples; s++, member += n_outputs) {
    for (int64_t o = 0; o < n_outputs; o++) member[o] = -1;
    for (; m < sample_end[s]; m++) {
      const int64_t begin = m ? ext_end[m - 1] : 0;
      auto found = to.find(folded({exts + begin, (size_t)(ext_end[m] - begin)}));
      if (found == to.end()) continue;
      for (int64_t o : found->second)
        if (member[o] < 0) member[o] = m;
    }
  }
}
EXPORT_LONG(wds_match)
