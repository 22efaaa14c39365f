// SPDX-License-Identifier: Apache-2.0
// A tool that NVTX finds by NVTX_INJECTION64_PATH: writes each range's begin and end, with thread and domain, as a line
// of the file that NVTX_TOOL_LOG names. Written to NVTX's headers (version 3).
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void (*Function)(void);
struct Callbacks {
  size_t size;
  int (*get)(int module, Function ***table, unsigned *size);
};
struct Attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;  // text (1), or what register_string gave for one (3)
};

static void line(const char *what, const void *domain, const char *name) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  FILE *log = fopen(getenv("NVTX_TOOL_LOG"), "a");
  fprintf(log, "%ld %s %s|%s\n", (long)syscall(SYS_gettid), what, domain ? (const char *)domain : "", name);
  fclose(log);
  pthread_mutex_unlock(&lock);
}

static void *create(const char *name) { return strdup(name); }
static void *register_string(void *domain, const char *text) { return strdup(text); }
static int push(void *domain, const struct Attributes *a) {
  int known = a->version == 3 && a->size == sizeof *a && (a->message_type == 1 || a->message_type == 3);
  line("push", domain, known ? a->message : "?");
  return 0;
}
static int pop(void *domain) {
  line("pop", domain, "");
  return 0;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t)) {
  const struct Callbacks *callbacks = get_table(1);
  Function **table = NULL;
  unsigned size = 0;
  if (!callbacks || callbacks->size < sizeof *callbacks || get_table(2) || !get_table(3)) return 0;
  if (callbacks->get(0, &table, &size) || !callbacks->get(5, &table, &size) || size != 16 || table[16]) return 0;
  *table[4] = (Function)push;
  *table[5] = (Function)pop;
  *table[10] = (Function)register_string;
  *table[12] = (Function)create;
  return 1;
}
