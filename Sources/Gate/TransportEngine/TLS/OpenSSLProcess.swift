internal import COpenSSL
internal import CRecordBuffers

/// OpenSSL settings for the whole process.
public enum OpenSSLProcess {
  /// Configures OpenSSL. Must run first in `main`: OpenSSL accepts memory functions only before its first allocation.
  /// Everything also works without this call.
  ///
  /// - Each thread keeps its last few record buffers. An idle connection still owns none, and a message no longer
  ///   pays for two large blocks from malloc, a tenth of its total cost.
  /// - OpenSSL frees nothing when the process exits, because the threads of loops may still use it then.
  public static func prepare() {
    _ = sallyport_keep_record_buffers()
    _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }

  /// The version of the library that this process uses, such as `3.0.17`.
  public static var version: String {
    OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
  }

  /// Frees the record buffers of a thread that has used TLS. The thread calls this last.
  static func threadEnds() { sallyport_free_record_buffers() }
}
