#ifndef SALLYPORT_CLIBCBOR_SHIM_H
#define SALLYPORT_CLIBCBOR_SHIM_H

#include <cbor.h>

#endif
