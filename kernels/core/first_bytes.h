// SPDX-License-Identifier: Apache-2.0
// What a file seems to be that is not what a decoder expects: "54 bytes that begin with 3c 21 ... ("<!..."), a web
// page".
#pragma once
#include <strings.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

class FirstBytes {
 public:
  static constexpr int kShown = 12;  // with the kind of a file of the MP4 family, such as "....ftypavif"

  // `data` has at least the first 32 of the `size` bytes, or all of them.
  FirstBytes(const uint8_t *data, int64_t size) {
    if (size == 0) {
      strcpy(text_, "an empty file");
      return;
    }
    int n = size < kShown ? (int)size : kShown;
    char hex[kShown * 3 + 1] = {}, shown[kShown + 1] = {};
    for (int i = 0; i < n; i++) {
      snprintf(hex + 3 * i, 4, "%02x ", data[i]);
      shown[i] = data[i] >= ' ' && data[i] <= '~' ? (char)data[i] : '.';
    }
    snprintf(text_, sizeof text_, "%lld bytes that begin with %s(\"%s\")%s", (long long)size, hex, shown,
             kind((const char *)data, size));
  }
  const char *text() const { return text_; }

 private:
  static const char *kind(const char *data, int64_t size) {
    auto begins = [=](const char *with) {
      size_t n = strlen(with);
      return size >= (int64_t)n && !strncasecmp(data, with, n);
    };
    if (begins("version https://git-lfs")) return ", a Git LFS pointer: run `git lfs pull`";
    if (begins("<!doctype html") || begins("<html")) return ", a web page";
    if (begins("\x1f\x8b")) return ", compressed by gzip";
    return "";
  }
  char text_[200];
};
