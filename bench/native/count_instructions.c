// SPDX-License-Identifier: Apache-2.0
// A plugin of QEMU that counts the instructions which a program executes, and prints their number when it ends.
// Declared here is what it uses of QEMU's interface for plugins, version 1.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

typedef uint64_t Id;
struct qemu_plugin_tb;
enum { ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(Id, void (*)(Id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_atexit_cb(Id, void (*)(Id, void *), void *);

#define VISIBLE __attribute__((visibility("default")))
VISIBLE int qemu_plugin_version = 1;

static uint64_t n;

static void on_translation(Id id, struct qemu_plugin_tb *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &n, qemu_plugin_tb_n_insns(block));
}

static void on_exit_of_program(Id id, void *data) {
  (void)id, (void)data;
  fprintf(stderr, "instructions %" PRIu64 "\n", n);
}

VISIBLE int qemu_plugin_install(Id id, const void *info, int argc, char **argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
  return 0;
}
