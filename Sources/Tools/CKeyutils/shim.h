#ifndef SALLYPORT_CKEYUTILS_SHIM_H
#define SALLYPORT_CKEYUTILS_SHIM_H

// The kernel's key rings.

#include <keyutils.h>

static const key_serial_t shim_SESSION_KEYRING = KEY_SPEC_SESSION_KEYRING;
static const key_serial_t shim_USER_SESSION_KEYRING = KEY_SPEC_USER_SESSION_KEYRING;

#endif
