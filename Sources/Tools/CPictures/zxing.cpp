#define ZX_USE_UTF8 1
#include "CZXing.h"

#include <ZXing/ReadBarcode.h>

int zxing_read(const uint8_t *pixels, int width, int height, void *context, zxing_found found) {
  try {
    const ZXing::ImageView image(pixels, width, height, ZXing::ImageFormat::Lum);
    ZXing::DecodeHints hints;
    hints.setFormats(ZXing::BarcodeFormat::QRCode);
    hints.setTryHarder(true);
    hints.setTryRotate(true);
    for (const auto &result : ZXing::ReadBarcodes(image, hints)) {
      if (!result.isValid()) continue;
      const auto text = result.text();
      const auto corner = result.position().topLeft();
      found(context, reinterpret_cast<const uint8_t *>(text.data()), text.size(), corner.x, corner.y);
    }
    return 0;
  } catch (...) {
    // An exception must not reach Swift.
    return -1;
  }
}
