#ifndef SALLYPORT_COPENSSL_SHIM_H
#define SALLYPORT_COPENSSL_SHIM_H

// Swift cannot import function-like macros: each one that the project needs has a static-inline twin here.

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// TLS, for the engine.

static inline int sallyport_SSL_CTX_set_min_proto_version(SSL_CTX *ctx, int version) {
  return (int)SSL_CTX_set_min_proto_version(ctx, version);
}

static inline void sallyport_SSL_CTX_set_mode(SSL_CTX *ctx, uint32_t mode) { SSL_CTX_set_mode(ctx, mode); }

static inline void sallyport_SSL_CTX_clear_mode(SSL_CTX *ctx, uint32_t mode) { SSL_CTX_clear_mode(ctx, mode); }

static inline void sallyport_SSL_CTX_disable_session_cache(SSL_CTX *ctx) {
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

static inline void sallyport_SSL_CTX_set_max_cert_list(SSL_CTX *ctx, long bytes) {
  SSL_CTX_set_max_cert_list(ctx, bytes);
}

static inline int sallyport_SSL_CTX_set1_groups_list(SSL_CTX *ctx, const char *groups) {
  return (int)SSL_CTX_set1_groups_list(ctx, groups);
}

static inline int sallyport_SSL_set_server_name(SSL *ssl, const char *name) {
  return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline void sallyport_SSL_CTX_set_servername(SSL_CTX *ctx, int (*choose)(SSL *, int *, void *), void *argument) {
  SSL_CTX_set_tlsext_servername_callback(ctx, choose);
  SSL_CTX_set_tlsext_servername_arg(ctx, argument);
}

/// A place for data in each context, which `end` is told of when the context ends.
static inline int sallyport_SSL_CTX_new_index(CRYPTO_EX_free *end) {
  return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, end);
}

/// A place for data in each connection, which `end` is told of when the connection ends.
static inline int sallyport_SSL_new_index(CRYPTO_EX_free *end) {
  return SSL_get_ex_new_index(0, NULL, NULL, NULL, end);
}

static inline int sallyport_SSL_CTX_add1_chain_cert(SSL_CTX *ctx, X509 *certificate) {
  return (int)SSL_CTX_add1_chain_cert(ctx, certificate);
}

/// From OpenSSL 3.2 on, `SSL_OP_NO_TX_CERTIFICATE_COMPRESSION` and `SSL_OP_NO_RX_CERTIFICATE_COMPRESSION` (RFC 8879). Older
/// headers lack the names. The guard of certificates cannot look into a compressed one.
static inline uint64_t sallyport_no_certificate_compression(void) { return (UINT64_C(1) << 32) | (UINT64_C(1) << 33); }

static inline uint64_t sallyport_SSL_OP_for_gate(void) {
  return SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
         SSL_OP_IGNORE_UNEXPECTED_EOF | sallyport_no_certificate_compression();
}

/// A new key on the named curve, or NULL. `EVP_EC_gen` is a macro over a variadic function.
static inline EVP_PKEY *sallyport_generate_ec(const char *curve) { return EVP_EC_gen(curve); }

/// The public key on the named curve at the uncompressed `point`, or NULL. In C, since the parameters point to one another.
static inline EVP_PKEY *sallyport_ec_public_key(const char *curve, const unsigned char *point, size_t size) {
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)curve, 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, size),
      OSSL_PARAM_construct_end(),
  };
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  if (context == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
      EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    key = NULL;
  }
  EVP_PKEY_CTX_free(context);
  return key;
}

/// `XN_FLAG_RFC2253` is a sum of macros.
static inline unsigned long sallyport_rfc2253_flags(void) { return XN_FLAG_RFC2253; }

/// Whether `code` only says that no further PEM block begins.
static inline int sallyport_is_no_pem_start(unsigned long code) {
  return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

/// Frees what OpenSSL allocated.
static inline void sallyport_free(void *memory) { OPENSSL_free(memory); }

#endif
