internal import COpenSSL
internal import CRecordBuffers

/// What OpenSSL is told once for a whole process.
public enum OpenSSLProcess {
  /// To be called first thing in `main`, before anything else uses OpenSSL: it takes no memory of others once it has taken
  /// any of its own. Everything works without it.
  ///
  /// - Each thread keeps the last few record buffers for itself: an idle connection still owns none, and a message no
  ///   longer pays for two large blocks of malloc's, a tenth of all that it costs.
  /// - Nothing is taken down when the process exits: the threads of loops may still be using it at that moment.
  public static func prepare() {
    _ = sallyport_keep_record_buffers()
    _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }

  /// To be called by a thread that has used TLS, as the last thing that it does.
  static func threadEnds() { sallyport_free_record_buffers() }
}
