// SPDX-License-Identifier: Apache-2.0
#include "decode/image.h"

// EXIF 2.3: a TIFF header and an image file directory of 12-byte entries; tag 0x0112 is the orientation, a SHORT.
int exif_orientation(Bytes exif) {
  if (!exif.has(0, 8)) return 1;
  bool big = exif.data[0] == 'M';
  if (!exif.starts(0, big ? "MM\0*" : "II*\0", 4)) return 1;
  int64_t directory = big ? exif.be32(4) : exif.le32(4);
  if (!exif.has(directory, 2)) return 1;
  int n = big ? exif.be16(directory) : exif.le16(directory);
  for (int i = 0; i < n; i++) {
    int64_t at = directory + 2 + 12ll * i;
    if (!exif.has(at, 12)) return 1;
    int tag = big ? exif.be16(at) : exif.le16(at);
    if (tag != 0x0112) continue;
    int type = big ? exif.be16(at + 2) : exif.le16(at + 2);
    int value = big ? exif.be16(at + 8) : exif.le16(at + 8);
    return type == 3 && value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}
