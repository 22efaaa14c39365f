// SPDX-License-Identifier: Apache-2.0
#include "read/tar.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/native_time.h"

namespace {

// Offsets in a header block: POSIX.1-1988, "ustar".
enum { kName = 0, kSize = 124, kChecksum = 148, kType = 156, kMagic = 257, kPrefix = 345 };
enum { kNameLength = 100, kNumberLength = 12, kPrefixLength = 155 };
// Longer names or attributes mean damage.
constexpr int64_t kMostAttributes = 1 << 20;
constexpr int64_t kMostBytes = 1ll << 60;

// Headers of small members lie close together, so one read gets many of them; for large members it gets one.
class Headers {
 public:
  explicit Headers(Object &input) : input_(input) {}

  // The bytes at `offset`, fewer than `n` at the end of the archive.
  const uint8_t *at(int64_t offset, int64_t n, int64_t &got) {
    if (offset < begin_ || offset + n > begin_ + size_) {
      const int64_t room = std::max(n, offset - begin_ < kNear && begin_ >= 0 ? kMany : far_);
      buffer_.resize(room);
      begin_ = offset;
      size_ = input_.read(offset, room, (char *)buffer_.data());
    }
    got = std::max<int64_t>(0, std::min(n, begin_ + size_ - offset));
    return buffer_.data() + (offset - begin_);
  }

  // If there are extended headers, a member's may have four blocks, which one read should get.
  void expect_attributes() { far_ = 4 * kTarBlock; }

 private:
  static constexpr int64_t kNear = 1 << 15, kMany = 1 << 16;
  int64_t far_ = kTarBlock;
  Object &input_;
  std::vector<uint8_t> buffer_;
  int64_t begin_ = -1, size_ = 0;
};

// Octal digits among blanks and zeros, or base 256 if the first bit is set; negative if invalid.
int64_t number(const uint8_t *field, int length) {
  if (field[0] & 0x80) {
    if (field[0] & 0x40) return -1;  // a negative number
    uint64_t value = field[0] & 0x3f;
    for (int i = 1; i < length; i++) {
      if (value >> 55) return -1;
      value = value << 8 | field[i];
    }
    return (int64_t)value;
  }
  int i = 0;
  while (i < length && field[i] == ' ') i++;
  int64_t value = 0;
  for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) value = value << 3 | (field[i] - '0');
  return i == length || field[i] == 0 || field[i] == ' ' ? value : -1;
}

std::string text(const uint8_t *field, int length) {
  return std::string((const char *)field, strnlen((const char *)field, length));
}

// What extended headers say of the next member, or of all following ones.
struct Attributes {
  bool has_path = false, has_size = false, sparse = false;
  std::string path;
  int64_t size = 0;

  // Records "length key=value\n", where the length includes the whole record.
  void parse(const uint8_t *data, int64_t n, int64_t offset) {
    for (int64_t i = 0; i < n && data[i];) {
      int64_t length = 0, k = i;
      for (; k < n && data[k] >= '0' && data[k] <= '9' && length <= n; k++) length = length * 10 + (data[k] - '0');
      if (k == i || k >= n || data[k] != ' ' || length <= k - i + 1 || length > n - i || data[i + length - 1] != '\n')
        fail_scan("a record of the extended header at byte %lld of the archive is damaged", (long long)offset);
      const char *key = (const char *)data + k + 1, *end = (const char *)data + i + length - 1;
      const char *equals = (const char *)memchr(key, '=', end - key);
      if (!equals)
        fail_scan("a record of the extended header at byte %lld of the archive has no '='", (long long)offset);
      set(std::string(key, equals), std::string(equals + 1, end), offset);
      i += length;
    }
  }

  void set(const std::string &key, const std::string &value, int64_t offset) {
    if (key == "path" || key == "GNU.sparse.name") {
      if (key == "path" && sparse && has_path) return;
      path = value, has_path = true;
    } else if (key == "size") {
      size = 0, has_size = true;
      bool digits = !value.empty() && value.size() <= 18;
      for (char c : value) {
        digits = digits && c >= '0' && c <= '9';
        if (digits) size = size * 10 + (c - '0');
      }
      if (!digits)
        fail_scan("the extended header at byte %lld of the archive says size=%.40s, which is no size",
                  (long long)offset, value.c_str());
    }
    if (key.rfind("GNU.sparse.", 0) == 0) sparse = true;
  }
};

bool is_zero(const uint8_t *block) {
  return std::all_of(block, block + kTarBlock, [](uint8_t b) { return b == 0; });
}

}  // namespace

bool tar_header_fits(const uint8_t *block) {
  // The sum of all bytes, with those of the checksum itself as blanks. Some tools summed signed bytes.
  int32_t plain = 0, with_sign = 0;
  for (int i = 0; i < kTarBlock; i++) plain += block[i], with_sign += (int8_t)block[i];
  for (int i = kChecksum; i < kChecksum + 8; i++) plain += ' ' - block[i], with_sign += ' ' - (int8_t)block[i];
  const int64_t sum = number(block + kChecksum, 8);
  return sum == plain || sum == with_sign;
}

int64_t tar_header_size(const uint8_t *block) { return number(block + kSize, kNumberLength); }

void scan_tar(Object &input, Table &table) {
  NativeTime time;
  Headers headers(input);
  Attributes global, next;
  const int64_t end = input.length();
  for (int64_t offset = 0; offset < end;) {
    int64_t got;
    const uint8_t *block = headers.at(offset, kTarBlock, got);
    if (got < kTarBlock)
      fail_scan("the archive is cut off in the header at byte %lld, or it is no tar archive", (long long)offset);
    if (is_zero(block)) return;
    if (!tar_header_fits(block))
      fail_scan("there is no tar header at byte %lld, or it is damaged: its checksum is wrong%s", (long long)offset,
                offset ? "" : " (compressed archives can't be read; unpack them first)");
    int64_t size = tar_header_size(block);
    if (size < 0) fail_scan("the tar header at byte %lld has no readable size", (long long)offset);
    const char type = (char)block[kType];
    const bool extended = type == 'x' || type == 'g' || type == 'X' || type == 'L' || type == 'K';
    if (!extended) {
      if (next.has_size)
        size = next.size;
      else if (global.has_size)
        size = global.size;
    }
    if (size > kMostBytes)
      fail_scan("the tar header at byte %lld says that its member has %lld bytes", (long long)offset, (long long)size);
    const int64_t content = offset + kTarBlock;
    // Links, folders and devices have no content, whatever their size says (POSIX).
    const bool has_content = extended || !(type >= '1' && type <= '6');
    const int64_t blocks = has_content ? (size + kTarBlock - 1) / kTarBlock : 0;
    if (extended) {
      headers.expect_attributes();
      if (size > kMostAttributes || content + size > end)
        fail_scan(
            "the extended header at byte %lld of the archive has %lld bytes; at most %lld are accepted, and the "
            "archive has %lld",
            (long long)offset, (long long)size, (long long)kMostAttributes, (long long)end);
      const uint8_t *data = headers.at(content, size, got);
      if (got < size) fail_scan("the archive shrank while it was read");
      if (type == 'L')
        next.path = text(data, (int)size), next.has_path = true;
      else if (type == 'x' || type == 'X')
        next.parse(data, size, offset);
      else if (type == 'g')
        global.parse(data, size, offset);
    } else {
      std::string name = text(block + kName, kNameLength);
      if (!memcmp(block + kMagic, "ustar", 6) && block[kPrefix])
        name = text(block + kPrefix, kPrefixLength) + "/" + name;
      if (next.has_path)
        name = next.path;
      else if (global.has_path)
        name = global.path;
      // Before ustar, a folder was a file whose name ends in '/'.
      const bool regular = (type == '0' || type == 0 || type == '7') && !(name.size() && name.back() == '/');
      if (regular && (next.sparse || global.sparse))
        fail_scan("%.200s, at byte %lld, is stored as a sparse file; pack the archive without --sparse", name.c_str(),
                  (long long)offset);
      if (type == 'S')
        fail_scan("%.200s, at byte %lld, is stored as a sparse file; pack the archive without --sparse", name.c_str(),
                  (long long)offset);
      if (regular) {
        table[TAR_OFFSET].push<int64_t>(content);
        table[TAR_SIZE].push<int64_t>(size);
        table[TAR_NAMES].append(name.data(), (int64_t)name.size());
        table[TAR_NAME_END].push<int64_t>(table[TAR_NAMES].bytes);
      }
      next = Attributes();
    }
    if (blocks > (end - content) / kTarBlock + 1) return;  // truncated
    offset = content + blocks * kTarBlock;
  }
}

EXPORT int tar_members(const char *path, Table *table) {
  return fill_table(table, [&](Table &t) {
    const auto object = open_object(path, Storage::kKept);
    scan_tar(*object, t);
  });
}
EXPORT_LONG(tar_members)
