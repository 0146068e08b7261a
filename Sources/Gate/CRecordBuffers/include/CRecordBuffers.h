#ifndef SALLYPORT_CRECORDBUFFERS_H
#define SALLYPORT_CRECORDBUFFERS_H

/// Has OpenSSL keep the buffers of records aside for each thread, from now on, in this process.
///
/// 0 if OpenSSL has allocated something already: then all stays as it was.
int sallyport_keep_record_buffers(void);

/// Frees what was kept aside for the calling thread, which is about to end.
void sallyport_free_record_buffers(void);

#endif
