// SPDX-License-Identifier: Apache-2.0
// The cards of a FITS header: "KEYWORD = value / comment", 80 characters.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/kernel.h"

namespace fits_cards {

constexpr int64_t kCard = 80;

inline std::string_view key_of(std::string_view card) {
  const std::string_view key = card.substr(0, 8);
  return key.substr(0, key.find(' '));
}

// The value of a card, without surrounding blanks.
inline std::string_view value_of(std::string_view card) {
  if (card.substr(8, 2) != "= ") return {};
  std::string_view v = card.substr(10);
  if (v.find('\'') == std::string_view::npos) v = v.substr(0, v.find('/'));
  const size_t begin = v.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return v.substr(begin, v.find_last_not_of(' ') - begin + 1);
}

// A quoted text, without trailing blanks.
inline std::string_view text_of(std::string_view card) {
  std::string_view v = value_of(card);
  if (v.empty() || v[0] != '\'') return {};
  v = v.substr(1, v.find('\'', 1) - 1);
  return v.substr(0, v.find_last_not_of(' ') + 1);
}

[[noreturn]] inline void unreadable(int hdu, std::string_view card) {
  fail("HDU %d: this card can't be read: %.*s", hdu, (int)std::min<size_t>(card.size(), 60), card.data());
}

inline int64_t integer(int hdu, std::string_view card) {
  std::string_view v = value_of(card);
  if (!v.empty() && v[0] == '+') v.remove_prefix(1);
  int64_t n = 0;
  const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), n);
  if (v.empty() || error != std::errc() || end != v.data() + v.size()) unreadable(hdu, card);
  return n;
}

inline double real(int hdu, std::string_view card) {
  std::string_view v = value_of(card);
  if (!v.empty() && v[0] == '+') v.remove_prefix(1);
  char text[kCard];
  for (size_t i = 0; i < v.size(); i++) text[i] = v[i] == 'D' || v[i] == 'd' ? 'e' : v[i];
  double x = 0;
  const auto [end, error] = std::from_chars(text, text + v.size(), x);
  if (v.empty() || error != std::errc() || end != text + v.size() || !std::isfinite(x)) unreadable(hdu, card);
  return x;
}

// The number after the name in a key such as "NAXIS12"; 0 if the key does not match.
inline int64_t numbered(std::string_view key, std::string_view name) {
  if (key.substr(0, name.size()) != name || key.size() == name.size()) return 0;
  int64_t n = 0;
  const auto [end, error] = std::from_chars(key.data() + name.size(), key.data() + key.size(), n);
  return error == std::errc() && end == key.data() + key.size() && n > 0 ? n : 0;
}

}  // namespace fits_cards
