// SPDX-License-Identifier: Apache-2.0
#include "read/url.h"

#include <algorithm>
#include <cstring>
#include <iterator>

bool is_url(const char *name) {
  static constexpr std::string_view schemes[] = {"http", "https", "s3",    "s3a",  "gs",
                                                 "gcs",  "az",    "azure", "abfs", "abfss"};
  const char *const end = strstr(name, "://");
  return end && std::count(std::begin(schemes), std::end(schemes), std::string_view(name, end - name));
}

bool is_in_bucket(const char *name) { return strncmp(name, "http", 4) && is_url(name); }

UrlParts parts_without_secrets(std::string_view url) {
  const size_t begin = url.find("://") + 3, end = std::min(url.find_first_of("?#", begin), url.size());
  const std::string_view scheme = url.substr(0, begin), rest = url.substr(begin, end - begin);
  const size_t at = rest.substr(0, rest.find('/')).rfind('@');
  const bool has_user = at != std::string_view::npos && url.compare(0, 4, "abfs");  // abfs://container@account...
  return {scheme, rest.substr(has_user ? at + 1 : 0)};
}

std::string without_secrets(const std::string &url) {
  const UrlParts parts = parts_without_secrets(url);
  return std::string(parts.scheme).append(parts.rest);
}
