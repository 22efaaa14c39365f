// SPDX-License-Identifier: Apache-2.0
#include "read/table.h"

EXPORT void table_free(void *column) { std::free(column); }
EXPORT_SHORT(table_free)

void fail_scan(const char *format, ...) {
  char text[kTableErrorSize];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  throw std::runtime_error(text);
}
