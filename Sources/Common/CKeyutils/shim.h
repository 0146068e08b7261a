#ifndef SALLYPORT_CKEYUTILS_SHIM_H
#define SALLYPORT_CKEYUTILS_SHIM_H

// The kernel's key rings, and the protection of a process that has secrets from being dumped.

#include <keyutils.h>
#include <sys/prctl.h>

static const key_serial_t shim_SESSION_KEYRING = KEY_SPEC_SESSION_KEYRING;
static const key_serial_t shim_USER_SESSION_KEYRING = KEY_SPEC_USER_SESSION_KEYRING;

// prctl is variadic, which Swift cannot call.
static inline int shim_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

#endif
