// SPDX-License-Identifier: Apache-2.0
// Stands in for libjbig in the wheel. Debian's libtiff is linked with JBIG-KIT, which is under the GPL and so can't be
// carried by an Apache-2.0 wheel. Here every use fails: a TIFF compressed with JBIG is reported as unreadable.
// Only the symbols that libtiff asks for; its structs are opaque here and never touched.
#define EINVAL_JBIG 4  // an "invalid data" result in JBIG-KIT's numbering: anything but success

int jbg_newlen(unsigned char *data, unsigned long size) {
  (void)data, (void)size;
  return EINVAL_JBIG;
}
const char *jbg_strerror(int number) {
  (void)number;
  return "this build of penstock does not read JBIG";
}

void jbg_dec_init(void *state) { (void)state; }
int jbg_dec_in(void *state, unsigned char *data, unsigned long size, unsigned long *taken) {
  (void)state, (void)data, (void)size;
  if (taken) *taken = 0;
  return EINVAL_JBIG;
}
unsigned char *jbg_dec_getimage(const void *state, int plane) {
  (void)state, (void)plane;
  return 0;
}
unsigned long jbg_dec_getsize(const void *state) {
  (void)state;
  return 0;
}
void jbg_dec_free(void *state) { (void)state; }

void jbg_enc_init(void *state, unsigned long width, unsigned long height, int planes, unsigned char **image,
                  void (*write)(unsigned char *, unsigned long, void *), void *file) {
  (void)state, (void)width, (void)height, (void)planes, (void)image, (void)write, (void)file;
}
void jbg_enc_out(void *state) { (void)state; }
void jbg_enc_free(void *state) { (void)state; }
