#ifndef SALLYPORT_CPOSTGRES_SHIM_H
#define SALLYPORT_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

#endif
