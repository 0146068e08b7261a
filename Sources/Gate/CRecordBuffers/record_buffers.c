// Memory for TLS records, without the price of asking for it.
//
// With SSL_MODE_RELEASE_BUFFERS an idle connection keeps no record buffer: OpenSSL allocates one of 16 KiB and some for
// each read and each write, and frees it at once. For malloc that is a large block, cut from its neighbour and merged
// with it again every time. Here each thread keeps the last few of them aside. Everything else goes to malloc.
//
// In C, since Swift has no variables of a thread, and OpenSSL asks for C functions.

#include "CRecordBuffers.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdlib.h>

enum {
  least_size = 16 << 10,
  // SSL3_RT_MAX_PLAIN_LENGTH and all that a record may add to it, with room.
  buffer_size = 20 << 10,
  // Tells such a block from almost all others without asking malloc for its size.
  alignment = 4 << 10,
  // What malloc may add to a block.
  slack = alignment,
  // One that is read into and one that is written from.
  most_kept = 2,
};

static __thread struct {
  void *blocks[most_kept];
  int count;
} kept;

static void *take(size_t size, const char *file, int line) {
  (void)file, (void)line;
  if (size < least_size || size > buffer_size) return malloc(size);
  return kept.count > 0 ? kept.blocks[--kept.count] : aligned_alloc(alignment, buffer_size);
}

// The size of a block decides what it may be used for, not its allocator.
static int is_record_buffer(void *block) {
  if ((uintptr_t)block % alignment != 0) return 0;
  size_t size = malloc_usable_size(block);
  return size >= buffer_size && size < buffer_size + slack;
}

static void give_back(void *block, const char *file, int line) {
  (void)file, (void)line;
  if (block != NULL && kept.count < most_kept && is_record_buffer(block)) {
    kept.blocks[kept.count++] = block;
  } else {
    free(block);
  }
}

static void *resize(void *block, size_t size, const char *file, int line) {
  if (size > 0) return realloc(block, size);
  give_back(block, file, line);
  return NULL;
}

int sallyport_keep_record_buffers(void) { return CRYPTO_set_mem_functions(take, resize, give_back); }

void sallyport_free_record_buffers(void) {
  while (kept.count > 0) free(kept.blocks[--kept.count]);
}
