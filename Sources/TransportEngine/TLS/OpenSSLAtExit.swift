internal import COpenSSL

/// What OpenSSL does when the process exits.
public enum OpenSSLAtExit {
  /// Has it do nothing: by itself it would take down what the threads of loops may still be using at that moment.
  ///
  /// To be called in `main`, behind `RecordBuffers.keep()` and before anything else uses OpenSSL.
  public static func leaveAsItIs() { _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) }
}
