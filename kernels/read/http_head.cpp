// SPDX-License-Identifier: Apache-2.0
#include "read/http_head.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "read/crc32c.h"
#include "read/md5.h"

namespace {

bool number(const std::string &text, int64_t *value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *value = atoll(text.c_str());
  return true;
}

std::string base64(const unsigned char *data, int size) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (int i = 0; i < size; i += 3) {
    const int n = size - i;
    const uint32_t bits = data[i] << 16 | (n > 1 ? data[i + 1] << 8 : 0) | (n > 2 ? data[i + 2] : 0);
    out += letters[bits >> 18], out += letters[bits >> 12 & 63];
    out += n > 1 ? letters[bits >> 6 & 63] : '=', out += n > 2 ? letters[bits & 63] : '=';
  }
  return out;
}

// The value of a name in a list like "crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ=="; "" if it is missing.
std::string listed(const std::string &text, const char *name) {
  const size_t length = strlen(name);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    while (at < end && text[at] == ' ') at++;
    if (!text.compare(at, length, name) && text[at + length] == '=')
      return text.substr(at + length + 1, end - at - length - 1);
    at = end + 1;
  }
  return "";
}

}  // namespace

bool HttpHead::parse(const char *text, int64_t size) {
  const char *const end = text + size;
  const auto end_of = [end](const char *at) {
    const void *found = memmem(at, end - at, "\r\n", 2);
    return found ? (const char *)found : end;
  };
  bool sums_are_of_body = true;
  const char *line = text, *next = end_of(line);
  if (next - line < 12 || memcmp(line, "HTTP/1.", 7)) return false;
  status = atoi(std::string(line + 9, 3).c_str());
  reason.assign(line + 9, next);
  is_kept = line[7] == '1';
  while (next < end) {
    line = next + 2, next = end_of(line);
    const char *const colon = (const char *)memchr(line, ':', next - line);
    if (!colon) continue;
    const auto is = [&](const char *name, int64_t length) {
      return colon - line == length && !strncasecmp(line, name, length);
    };
    const auto value = [&] {
      const char *a = colon + 1, *b = next;
      while (a < b && (*a == ' ' || *a == '\t')) a++;
      while (b > a && (b[-1] == ' ' || b[-1] == '\t')) b--;
      return std::string(a, b);
    };
    switch (colon - line) {
      case 4:
        if (is("ETag", 4)) tag = value();
        break;
      case 10:
        if (is("Connection", 10) && !strcasecmp(value().c_str(), "close")) is_kept = false;
        break;
      case 11:
        if (is("Content-MD5", 11)) md5 = value();
        if (is("x-goog-hash", 11)) {
          const std::string sums = value();
          for (auto [to, name] : {std::pair(&crc32c, "crc32c"), std::pair(&md5, "md5")})
            if (const std::string found = listed(sums, name); !found.empty()) *to = found;
        }
        break;
      case 13:
        if (is("Content-Range", 13)) range = value();
        break;
      case 14:
        if (is("Content-Length", 14) && !number(value(), &length)) return false;
        break;
      case 16:
        if (is("Content-Encoding", 16)) is_plain = false;
        break;
      case 17:
        if (is("Transfer-Encoding", 17)) is_plain = false;
        break;
      case 21:
        if (is("x-amz-checksum-crc32c", 21)) crc32c = value();
        break;
      case 30:  // decompressed in transit, while the checksums are of the stored bytes
        if (is("x-goog-stored-content-encoding", 30) && value() != "identity") sums_are_of_body = false;
        break;
    }
  }
  if (!sums_are_of_body) crc32c.clear(), md5.clear();
  return true;
}

const char *wrong_checksum(const HttpHead &head, const char *body, int64_t size) {
  // For multipart uploads S3 sends a checksum of the parts' checksums, followed by a dash and the number of parts.
  if (!head.crc32c.empty() && head.crc32c.find('-') == std::string::npos) {
    const uint32_t sum = crc32c(body, size);
    const unsigned char bytes[] = {(unsigned char)(sum >> 24), (unsigned char)(sum >> 16), (unsigned char)(sum >> 8),
                                   (unsigned char)sum};
    if (base64(bytes, 4) != head.crc32c) return "CRC-32C";
  }
  if (!head.md5.empty()) {
    unsigned char bytes[16];
    md5(body, size, bytes);
    if (base64(bytes, 16) != head.md5) return "MD5";
  }
  return "";
}
