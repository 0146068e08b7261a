extension P256PublicKey {
  /// Whether `signature` is an ECDSA signature of `message`, which is hashed here with SHA-256, in the form of JOSE's
  /// ES256: r, then s, 32 bytes each (RFC 7518 section 3.4).
  public func isValidES256Signature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard let der = FixedWidthSignature.der(bytes: signature) else { return false }
    return isValidSignature(der, for: message)
  }
}
