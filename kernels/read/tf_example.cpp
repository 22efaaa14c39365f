// SPDX-License-Identifier: Apache-2.0
#include "read/tf_example.h"

#include <algorithm>
#include <string>

#include "read/crc32c.h"
#include "read/parser.h"
#include "read/protobuf.h"

namespace {

constexpr int64_t kHeader = 12, kFooter = 4;
// Several strings are output as rows of equal length, with at most this many bytes of padding.
constexpr int64_t kMostPadding = 64 << 20;

const char *const kKinds[] = {"int64", "string", "float32"};
// Field numbers of the lists in a Feature, indexed by WantedFeature::Kind.
constexpr int kListOf[] = {3, 1, 2};

[[noreturn]] void fail_damaged(const char *why) { fail("the record holds no valid tf.Example: %s", why); }

uint64_t load64(const char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
uint32_t load32(const char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

Part payload(Part record, bool verifies) {
  if (record.size < kHeader + kFooter)
    fail("the record has %lld bytes, by the index; the least is 16: the index is that of another file",
         (long long)record.size);
  const uint64_t size = load64(record.data);
  if (masked_crc32c(record.data, 8) != load32(record.data + 8))
    fail(
        "no record begins here: the checksum of its length is wrong; the file is damaged, or the index is that of "
        "another file");
  if (size != (uint64_t)(record.size - kHeader - kFooter))
    fail("the record has %llu bytes, by the index %lld: the index is that of another file", (unsigned long long)size,
         (long long)(record.size - kHeader - kFooter));
  const Part data{record.data + kHeader, (int64_t)size};
  if (verifies && masked_crc32c(data.data, data.size) != load32(data.data + data.size))
    fail("the checksum of the record is wrong: the file is damaged (verify_checksums=False reads it all the same)");
  return data;
}

// A feature of an example: the lists of the last kind stored, concatenated. Empty lists of another kind than requested
// count as missing.
class Feature {
 public:
  Feature(Part message, const WantedFeature &wanted, const char *name) : message_(message), w_(wanted), name_(name) {
    int last = 0;
    for (Message m(message_.data, message_.size); m.next();)
      if (m.wire == Message::kBytes && m.field >= 1 && m.field <= 3) {
        if ((int)m.field != last) first_ = lists_;
        last = (int)m.field;
        lists_++;
      }
    if (last == kListOf[w_.kind]) return;
    const int kind = (int)(std::find(kListOf, kListOf + 3, last) - kListOf);
    each_field([&](const Message &v) {
      if (v.wire != Message::kBytes || v.size || kind == WantedFeature::kString)
        fail("feature '%.100s' holds values of type %s; %s was asked for", name_, kKinds[kind], kKinds[w_.kind]);
    });
    first_ = lists_;
  }
  // Calls f(number) or f(bytes) for each value.
  template <class F>
  void each(const F &f) const {
    each_field([&](const Message &v) { value(v, f); });
  }
  int64_t count() const {
    int64_t n = 0;
    each([&](auto) { n++; });
    return n;
  }

 private:
  template <class F>
  void each_field(const F &f) const {
    int list = 0;
    for (Message m(message_.data, message_.size); m.next();) {
      if (m.wire != Message::kBytes || m.field < 1 || m.field > 3 || list++ < first_) continue;
      for (Message values(m.data, m.size); values.next();)
        if (values.field == 1) f(values);
    }
  }
  template <class F>
  void value(const Message &v, const F &f) const {
    if (w_.kind == WantedFeature::kString) {
      if (v.wire != Message::kBytes) fail_damaged("a string is none");
      f(Part{v.data, v.size});
    } else if (w_.kind == WantedFeature::kFloat) {
      if (v.wire == Message::kFixed32) return f(Part{(const char *)&v.number, 4});
      if (v.wire != Message::kBytes || v.size % 4) fail_damaged("a list of floats has odd bytes");
      for (int64_t i = 0; i < v.size; i += 4) f(Part{v.data + i, 4});
    } else {
      if (v.wire == Message::kVarint) return f(Part{(const char *)&v.number, 8});
      if (v.wire != Message::kBytes) fail_damaged("an integer is none");
      for (Message numbers(v.data, v.size); !numbers.at_end();) {
        const uint64_t number = numbers.varint();
        f(Part{(const char *)&number, 8});
      }
    }
  }
  Part message_;
  const WantedFeature &w_;
  const char *name_;
  int lists_ = 0, first_ = 0;
};

int64_t item_size(const WantedFeature &w) { return w.kind == WantedFeature::kFloat ? 4 : 8; }

void give_numbers(Sample &sample, int k, const WantedFeature &w, const Feature *feature, int64_t count) {
  Tensor &t = sample.out(k);
  const int64_t size = item_size(w);
  if (!w.is_fixed) {
    t.shape[0] = w.volume ? count / w.volume : 0;
    std::copy_n(w.shape, w.ndim, t.shape + 1);
    t.data = sample.take(count * size);
  }
  char *to = t.as<char>();
  if (count)
    feature->each([&](Part v) { memcpy(to, v.data, size), to += size; });
  else if (w.is_fixed)
    for (int64_t i = 0; i < w.volume; i++) memcpy(to + i * size, &w.default_value, size);
}

void give_strings(Sample &sample, int k, const WantedFeature &w, const Feature *feature, int64_t count,
                  const char *text) {
  const Part missing{text + w.default_value, w.default_size};
  if (w.is_fixed && w.volume == 1) {
    Part first = missing;
    int64_t n = 0;
    if (count) feature->each([&](Part v) { first = n++ ? first : v; });
    return sample.give(k, first.data, first.size);
  }
  int64_t longest = 0, total = 0;
  if (count)
    feature->each([&](Part v) { longest = std::max(longest, v.size), total += v.size; });
  else if (w.is_fixed)
    longest = missing.size;
  const int64_t rows = w.is_fixed ? w.volume : count;
  if (longest && rows > (kMostPadding + total) / longest)
    fail("%lld strings of up to %lld bytes are too much for one array: its rows are as long as the longest",
         (long long)rows, (long long)longest);
  Tensor &t = sample.out(k);
  int64_t *shape = t.shape;
  if (!w.is_fixed) *shape++ = w.volume ? count / w.volume : 0;
  std::copy_n(w.shape, w.ndim, shape);
  shape[w.ndim] = longest;
  char *to = (char *)sample.take(rows * longest);
  t.data = to;
  memset(to, 0, rows * longest);
  if (count)
    feature->each([&](Part v) { memcpy(to, v.data, v.size), to += longest; });
  else
    for (int64_t i = 0; i < rows; i++) memcpy(to + i * longest, missing.data, missing.size);
}

void give(Sample &sample, int k, const WantedFeature &w, Part message, const char *text) {
  const std::string name(text + w.name, w.name_size);
  if (!message.data) {
    w.kind == WantedFeature::kString ? give_strings(sample, k, w, nullptr, 0, text)
                                     : give_numbers(sample, k, w, nullptr, 0);
    return;
  }
  const Feature feature(message, w, name.c_str());
  const int64_t count = feature.count();
  const bool takes_first = w.kind == WantedFeature::kString && w.volume == 1;  // as in DALI
  if (w.is_fixed && count && count != w.volume && !takes_first)
    fail("feature '%.100s' has %lld values, its shape %lld", name.c_str(), (long long)count, (long long)w.volume);
  if (!w.is_fixed && (w.volume ? count % w.volume : count))
    fail("feature '%.100s' has %lld values, which are no multiple of the %lld of its partial shape", name.c_str(),
         (long long)count, (long long)w.volume);
  w.kind == WantedFeature::kString ? give_strings(sample, k, w, &feature, count, text)
                                   : give_numbers(sample, k, w, &feature, count);
}

void parse(Sample &sample, const TfExampleArgs &a) {
  const Part example = payload(sample.parts[0], a.verifies);
  const auto *wanted = (const WantedFeature *)a.features;
  const char *text = (const char *)a.text;
  auto *found = sample.scratch.array<Part>(a.n_features + 1);
  std::fill_n(found, a.n_features, Part{nullptr, 0});
  for (Message features(example.data, example.size); features.next();) {
    if (features.field != 1 || features.wire != Message::kBytes) continue;
    for (Message entries(features.data, features.size); entries.next();) {
      if (entries.field != 1 || entries.wire != Message::kBytes) continue;
      Part name{"", 0}, value{"", 0};
      for (Message entry(entries.data, entries.size); entry.next();) {
        if (entry.wire != Message::kBytes) continue;
        if (entry.field == 1) name = {entry.data, entry.size};
        if (entry.field == 2) value = {entry.data, entry.size};
      }
      for (int64_t k = 0; k < a.n_features; k++)  // the last one of a name counts
        if (name.size == wanted[k].name_size && !memcmp(name.data, text + wanted[k].name, name.size)) found[k] = value;
    }
  }
  for (int k = 0; k < a.n_features; k++) give(sample, k, wanted[k], found[k], text);
}

}  // namespace

EXPORT_PARSER(tf_example, TfExampleArgs, parse)
