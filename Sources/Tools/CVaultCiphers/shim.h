// What files of other authenticators are encrypted with, and swift-crypto does not have.
#include <argon2.h>
#include <sodium/core.h>
#include <sodium/crypto_secretstream_xchacha20poly1305.h>
#include <sodium/utils.h>
