#include "source_commit.h"

// Package.swift defines it.
#ifndef SALLYPORT_COMMIT
#define SALLYPORT_COMMIT ""
#endif

const char *sallyport_source_commit(void) { return SALLYPORT_COMMIT; }
