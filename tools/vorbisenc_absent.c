// SPDX-License-Identifier: Apache-2.0
// Stands in for libvorbisenc in the wheel. Debian's libsndfile is linked with that encoder, whose tables are 700 KB;
// here sounds are only read. The only symbol that libsndfile asks for: OV_EIMPL, "not implemented".
int vorbis_encode_init_vbr(void *info, long channels, long rate, float quality) {
  (void)info, (void)channels, (void)rate, (void)quality;
  return -130;
}
