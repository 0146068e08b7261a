#ifndef SALLYPORT_CZXING_H
#define SALLYPORT_CZXING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// zxing-cpp has C++ alone.

/// Called for each QR code with its bytes and the place of its upper left corner.
typedef void (*zxing_found)(void *context, const uint8_t *bytes, size_t count, int x, int y);

/// Looks for QR codes in `width` times `height` bytes of brightness. Returns 0, or -1 if memory is short.
int zxing_read(const uint8_t *pixels, int width, int height, void *context, zxing_found found);

#ifdef __cplusplus
}
#endif

#endif
