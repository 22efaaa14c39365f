// SPDX-License-Identifier: Apache-2.0
// Stands in for libsndfile's mpeg_l3_encode.c, which needs the encoder LAME: here sounds are only read. Nothing is set
// up.
int mpeg_l3_encoder_init(void *file, int info) {
  (void)file, (void)info;
  return 1;  // an error of libsndfile's
}
int mpeg_l3_encoder_write_id3tag(void *file) {
  (void)file;
  return -1;
}
int mpeg_l3_encoder_set_quality(void *file, double quality) {
  (void)file, (void)quality;
  return 0;
}
int mpeg_l3_encoder_set_bitrate_mode(void *file, int mode) {
  (void)file, (void)mode;
  return 0;
}
int mpeg_l3_encoder_get_bitrate_mode(void *file) {
  (void)file;
  return -1;
}
