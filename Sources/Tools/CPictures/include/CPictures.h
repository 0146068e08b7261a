#ifndef SALLYPORT_CPICTURES_H
#define SALLYPORT_CPICTURES_H

// Pictures of QR codes: libpng and libjpeg-turbo as they are, zxing-cpp through CZXing.h.

#include <png.h>
#include <turbojpeg.h>

#endif
