internal import ByteCoding
internal import COpenSSL

/// An `X509`.
///
/// The object is never changed after it was made; what OpenSSL caches in it, it caches under a lock of its own.
final class X509Handle: @unchecked Sendable {
  let pointer: OpaquePointer

  init(der: [UInt8]) throws(CryptographyError) {
    OpenSSLErrors.clear()
    let parsed = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_X509(nil, &cursor, bytes.count)
    }
    guard let parsed else { throw .malformedCertificate(OpenSSLErrors.take()) }
    pointer = parsed
  }

  deinit { X509_free(pointer) }

  var notBefore: Timestamp? { Self.timestamp(X509_get0_notBefore(pointer)) }
  var notAfter: Timestamp? { Self.timestamp(X509_get0_notAfter(pointer)) }

  func subject() throws(CryptographyError) -> String {
    let target = try MemoryBIO()
    guard X509_NAME_print_ex(target.handle, X509_get_subject_name(pointer), 0, sallyport_rfc2253_flags()) >= 0 else {
      throw .malformedCertificate("its subject is no name")
    }
    return String(decoding: target.take(), as: UTF8.self)
  }

  /// Whether `signature` is one of ECDSA over `message` by the subject's key, whatever curve that is on.
  func isValid(_ signature: some Collection<UInt8>, for message: [UInt8], digest: DigestAlgorithm) -> Bool {
    OpenSSLErrors.clear()
    guard let key = X509_get_pubkey(pointer).map(PKey.init(owning:)), EVP_PKEY_is_a(key.handle, "EC") == 1 else {
      return false
    }
    return key.isValid(signature, for: message, digest: digest)
  }

  private static func timestamp(_ time: UnsafePointer<ASN1_TIME>?) -> Timestamp? {
    var parts = tm()
    guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
    let day = CivilDate.day(
      year: Int64(parts.tm_year) + 1900, month: Int64(parts.tm_mon) + 1, day: Int64(parts.tm_mday))
    return Timestamp(
      seconds: day * 86400 + Int64(parts.tm_hour) * 3600 + Int64(parts.tm_min) * 60 + Int64(parts.tm_sec))
  }
}
