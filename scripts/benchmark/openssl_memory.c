// openssl_memory CERTIFICATE KEY: prints how many bytes of heap OpenSSL keeps for the server side of one idle TLS 1.3
// connection, configured like the gate's. No server on OpenSSL can use less.

#include <malloc.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

enum { connections = 200, pipe_size = 64 << 10 };

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "openssl_memory: %s\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

// Performs one handshake in memory and sends a byte each way. Keeps the idle server side.
static SSL *idle_server(SSL_CTX *server_context, SSL_CTX *client_context) {
  SSL *server = SSL_new(server_context), *client = SSL_new(client_context);
  BIO *ours, *theirs;
  require(server && client && BIO_new_bio_pair(&ours, pipe_size, &theirs, pipe_size) == 1, "out of memory");
  SSL_set_bio(server, ours, ours);
  SSL_set_bio(client, theirs, theirs);
  SSL_set_accept_state(server);
  SSL_set_connect_state(client);
  for (int flights = 0; flights < 4; flights++) {
    SSL_do_handshake(client);
    SSL_do_handshake(server);
  }
  char byte = 'x';
  require(SSL_is_init_finished(server) && SSL_is_init_finished(client), "the handshake did not end");
  require(SSL_write(client, &byte, 1) == 1 && SSL_read(server, &byte, 1) == 1, "the server reads nothing");
  require(SSL_write(server, &byte, 1) == 1 && SSL_read(client, &byte, 1) == 1, "the client reads nothing");
  SSL_free(client);
  SSL_set_bio(server, NULL, NULL);
  return server;
}

int main(int count, char **arguments) {
  require(count == 3, "usage: openssl_memory CERTIFICATE KEY");
  SSL_CTX *server = SSL_CTX_new(TLS_server_method()), *client = SSL_CTX_new(TLS_client_method());
  require(server && client, "out of memory");
  require(SSL_CTX_use_certificate_chain_file(server, arguments[1]) == 1, "the certificate cannot be read");
  require(SSL_CTX_use_PrivateKey_file(server, arguments[2], SSL_FILETYPE_PEM) == 1, "the key cannot be read");
  SSL_CTX_set_mode(server, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(server, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(server, 0);
  SSL_CTX_set_session_cache_mode(server, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_ciphersuites(client, "TLS_AES_128_GCM_SHA256");
  SSL *kept[connections];
  // Memory that OpenSSL allocates only once does not count.
  SSL_free(idle_server(server, client));
  size_t before = mallinfo2().uordblks;
  for (int index = 0; index < connections; index++) kept[index] = idle_server(server, client);
  printf("%zu\n", (mallinfo2().uordblks - before) / connections);
  for (int index = 0; index < connections; index++) SSL_free(kept[index]);
  SSL_CTX_free(client);
  SSL_CTX_free(server);
}
