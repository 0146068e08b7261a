// Keeps buffers for TLS records per thread, so that OpenSSL does not allocate one for each record.
//
// With SSL_MODE_RELEASE_BUFFERS an idle connection keeps no record buffer: OpenSSL allocates one of a little over
// 16 KiB for each read and each write, and frees it at once. For malloc this is a large block that it splits and
// merges every time. Here each thread keeps its last few buffers. All other sizes go to malloc.
//
// This is C because Swift has no thread-local variables and OpenSSL requires C functions.

#include "CRecordBuffers.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdlib.h>

enum {
  least_size = 16 << 10,
  // SSL3_RT_MAX_PLAIN_LENGTH plus the maximum overhead of a record, rounded up.
  buffer_size = 20 << 10,
  // Distinguishes a record buffer from almost all other blocks without asking malloc for the size.
  alignment = 4 << 10,
  // The bytes that malloc may add to a block.
  slack = alignment,
  // One for reading and one for writing.
  most_kept = 2,
};

static __thread struct {
  void *blocks[most_kept];
  int count;
} kept;

static __attribute__((noinline)) void *take_buffer(void) {
  return kept.count > 0 ? kept.blocks[--kept.count] : aligned_alloc(alignment, buffer_size);
}

static void *take(size_t size, const char *file, int line) {
  (void)file, (void)line;
  if (size < least_size || size > buffer_size) return malloc(size);
  return take_buffer();
}

// Decides by size alone whether an aligned block is a record buffer: any block of the right size may be reused, even
// one that malloc allocated.
static __attribute__((noinline)) void give_back_aligned(void *block) {
  size_t size = kept.count < most_kept ? malloc_usable_size(block) : 0;
  if (size >= buffer_size && size < buffer_size + slack) {
    kept.blocks[kept.count++] = block;
  } else {
    free(block);
  }
}

// A handshake frees about two thousand blocks, so that each instruction here counts.
static void give_back(void *block, const char *file, int line) {
  (void)file, (void)line;
  if ((uintptr_t)block % alignment != 0) {
    free(block);
  } else if (block != NULL) {
    // OpenSSL often frees nothing.
    give_back_aligned(block);
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
