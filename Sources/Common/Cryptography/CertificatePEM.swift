internal import COpenSSL

extension MemoryBIO {
  /// One PEM block (RFC 7468) with `label` around `content`.
  static func pem(_ label: String, _ content: [UInt8]) throws(CryptographyError) -> String {
    let target = try MemoryBIO()
    guard target.withPointer({ PEM_write_bio($0, label, "", content, content.count) }) > 0 else {
      throw .operationFailed("PEM encoding", reason: OpenSSLErrors.take())
    }
    return String(decoding: target.take(), as: UTF8.self)
  }
}

extension Certificate {
  /// Parses every certificate in `pem` (RFC 7468), in order. Text between blocks and blocks of other kinds are
  /// skipped.
  ///
  /// - Throws: `malformedPEM` if there is no certificate or a block is damaged, `malformedCertificate` for the
  ///   content of a block.
  public static func certificates(pem: String) throws(CryptographyError) -> [Certificate] {
    try encodings(pem: pem).map { der throws(CryptographyError) in
      // PEM is configuration. OpenSSL must be able to parse it, and an error must be reported now.
      try X509Handle(try Certificate(der: der)).certificate
    }
  }

  /// The content of every block of a certificate in `pem` (RFC 7468), in order. It is not parsed.
  ///
  /// - Throws: `malformedPEM` if there is no certificate or a block is damaged.
  public static func encodings(pem: String) throws(CryptographyError) -> [[UInt8]] {
    let source = try MemoryBIO(reading: Array(pem.utf8))
    var encodings: [[UInt8]] = []
    while let block = try nextBlock(from: source) {
      if block.label == "CERTIFICATE" { encodings.append(block.content) }
    }
    guard !encodings.isEmpty else { throw .malformedPEM("no certificate in it") }
    return encodings
  }

  /// The certificate as one PEM block.
  public var pem: String {
    get throws(CryptographyError) { try MemoryBIO.pem("CERTIFICATE", der) }
  }

  private static func nextBlock(from source: MemoryBIO) throws(CryptographyError) -> (label: String, content: [UInt8])?
  {
    var label: UnsafeMutablePointer<CChar>?
    var header: UnsafeMutablePointer<CChar>?
    var content: UnsafeMutablePointer<UInt8>?
    var count = 0
    OpenSSLErrors.clear()
    let code = source.withPointer { PEM_read_bio($0, &label, &header, &content, &count) }
    guard code == 1, let label else {
      let isEnd = sallyport_is_no_pem_start(ERR_peek_last_error()) == 1
      let reason = OpenSSLErrors.take()
      guard isEnd else { throw .malformedPEM(reason) }
      return nil
    }
    defer {
      sallyport_free(label)
      sallyport_free(header)
      sallyport_free(content)
    }
    return (String(cString: label), Array(UnsafeBufferPointer(start: content, count: count)))
  }
}
