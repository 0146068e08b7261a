internal import ByteCoding
internal import COpenSSL
internal import Glibc

/// What the gate reads of the certificates of a chain.
enum CertificateLink {
  /// Identifies `certificate` by its issuer and its serial number, as lists of revoked certificates do: 32 bytes, `nil` if
  /// memory is exhausted.
  static func digest(of certificate: OpaquePointer) -> [UInt8]? {
    guard let issuer = X509_get_issuer_name(certificate), let serial = X509_get0_serialNumber(certificate) else {
      return nil
    }
    return digest(issuer: issuer, serial: serial)
  }

  /// Identifies the issuer of `certificate`, as lists of revoked certificates do; `nil` if memory is exhausted.
  static func issuerHash(of certificate: OpaquePointer) -> UInt32? {
    X509_get_issuer_name(certificate).flatMap { hash(of: $0) }
  }

  /// The first four bytes of the SHA-1 of `name` in OpenSSL's canonical form: a list may write the name in another type
  /// of string than the certificate. They are enough to tell the configured authorities apart. `nil` if memory is
  /// exhausted.
  static func hash(of name: OpaquePointer) -> UInt32? {
    var isHashed: Int32 = 0
    let hash = UInt32(truncatingIfNeeded: X509_NAME_hash_ex(name, nil, nil, &isHashed))
    return isHashed == 1 ? hash : nil
  }

  /// Four bytes of the issuer are enough next to the serial number, because a collision only closes a session.
  static func digest(issuer: OpaquePointer, serial: UnsafePointer<ASN1_INTEGER>) -> [UInt8]? {
    let length = i2d_ASN1_INTEGER(serial, nil)
    guard let hash = hash(of: issuer), length > 0 else { return nil }
    var content = withUnsafeBytes(of: hash.bigEndian, Array.init)
    content += [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, initialized in
      var cursor = buffer.baseAddress
      initialized = Int(max(0, i2d_ASN1_INTEGER(serial, &cursor)))
    }
    var digest = [UInt8](repeating: 0, count: 32)
    SHA256(content, content.count, &digest)
    return digest
  }

  /// Returns `name` in the notation of RFC 2253, never truncated: a truncated subject could match another one. `nil` if
  /// memory is exhausted.
  static func text(of name: OpaquePointer) -> String? {
    guard let memory = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(memory) }
    X509_NAME_print_ex(memory, name, 0, sallyport_rfc2253_flags())
    var text = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
    let count = BIO_read(memory, &text, Int32(text.count))
    return String(decoding: text.prefix(max(0, Int(count))), as: UTF8.self)
  }

  /// Returns the second of `time`; `nil` if it cannot be read.
  static func time(_ time: UnsafePointer<ASN1_TIME>) -> Timestamp? {
    var parts = tm()
    return ASN1_TIME_to_tm(time, &parts) == 1 ? Timestamp(seconds: Int64(timegm(&parts))) : nil
  }
}
