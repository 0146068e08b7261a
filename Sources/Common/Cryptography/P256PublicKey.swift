internal import COpenSSL

/// A public key on P-256, made ready once for any number of verifications.
///
/// Making one costs more than a verification: keep it for a key that signs again.
public final class P256PublicKey: Sendable {
  /// The key in X9.62 form: 0x04, then x and y with 32 bytes each.
  public let x963: [UInt8]
  let key: PKey

  /// The size of a key in X9.62 form, in bytes.
  public static let x963Size = 65

  /// Parses a key in X9.62 form, uncompressed, the only accepted form.
  ///
  /// - Throws: `malformedPublicKey` if it has another form or is not a point of the curve.
  public init(x963: [UInt8]) throws(CryptographyError) {
    guard x963.count == Self.x963Size, x963.first == 0x04 else {
      throw .malformedPublicKey("an uncompressed P-256 point has 65 bytes and starts with 04")
    }
    guard let key = PKey(p256Point: x963) else {
      throw .malformedPublicKey("not a point of P-256 (\(OpenSSLErrors.take()))")
    }
    self.x963 = x963
    self.key = key
  }

  /// The key as `SubjectPublicKeyInfo` (RFC 5480): id-ecPublicKey, the named curve, an uncompressed point.
  public convenience init(spki: [UInt8]) throws(CryptographyError) {
    guard let x963 = Self.point(inSPKI: spki) else {
      throw .malformedPublicKey("not the SubjectPublicKeyInfo of an uncompressed P-256 point")
    }
    try self.init(x963: x963)
  }

  /// The key as `SubjectPublicKeyInfo`, 91 bytes.
  public var spki: [UInt8] { Self.spkiPrefix + x963 }
  /// The key as one PEM block `PUBLIC KEY` (RFC 7468 section 13), as `openssl pkey -pubin` reads it.
  public var pem: String {
    get throws(CryptographyError) { try MemoryBIO.pem("PUBLIC KEY", spki) }
  }

  /// Whether `der` is an ECDSA signature of `message`, which is hashed here with SHA-256.
  ///
  /// The signature must be strict DER. ECDSA is malleable: from one signature anyone can make another valid one for
  /// the same message. So signatures do not identify anything.
  public func isValidSignature(_ der: [UInt8], for message: [UInt8]) -> Bool {
    key.isValid(der, for: message, digest: .sha256)
  }

  /// The bytes before the point in the DER of every P-256 key. All parts have fixed lengths.
  private static let spkiPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,  // id-ecPublicKey
    0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,  // prime256v1
    0x03, 0x42, 0x00,
  ]

  /// The X9.62 point of a P-256 `SubjectPublicKeyInfo`; `nil` for keys of another kind.
  static func point(inSPKI spki: some Collection<UInt8>) -> [UInt8]? {
    guard spki.count == spkiPrefix.count + x963Size, spki.starts(with: spkiPrefix) else { return nil }
    return Array(spki.dropFirst(spkiPrefix.count))
  }
}

extension P256PublicKey: Hashable {
  public static func == (first: P256PublicKey, second: P256PublicKey) -> Bool { first.x963 == second.x963 }
  public func hash(into hasher: inout Hasher) { hasher.combine(x963) }
}
