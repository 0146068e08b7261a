#ifndef SALLYPORT_CLIBSECRET_SHIM_H
#define SALLYPORT_CLIBSECRET_SHIM_H

// The Secret Service API of desktops (GNOME Keyring, KWallet, KeePassXC), over D-Bus.

#include <libsecret/secret.h>

#endif
