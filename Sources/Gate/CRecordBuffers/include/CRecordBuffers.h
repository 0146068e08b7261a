#ifndef SALLYPORT_CRECORDBUFFERS_H
#define SALLYPORT_CRECORDBUFFERS_H

/// Makes OpenSSL reuse record buffers per thread, from now on, in the whole process.
///
/// Returns 1, or 0 if OpenSSL has already allocated memory. Nothing changes in that case.
int sallyport_keep_record_buffers(void);

/// Frees the record buffers that are kept for the calling thread. Call it just before the thread exits.
void sallyport_free_record_buffers(void);

#endif
