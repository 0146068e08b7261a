/// The keys of strangers that OpenSSL may parse.
///
/// OpenSSL parses a key together with its certificate, before anything is trusted. A curve given by its parameters
/// makes it compute with a prime that the sender chose: 554 bytes take 300 ms. RFC 5480 section 2.1.1 forbids such
/// curves in certificates.
enum PublicKeyForm {
  /// Elliptic curves (RFC 5480), RSA (RFC 3279), Ed25519 and Ed448 (RFC 8410). OpenSSL reads parameters of a curve under
  /// other identifiers, too, so that an unknown one is refused.
  private static let known: [ObjectIdentifier] = [
    .ellipticCurveKey, .rsaKey, ObjectIdentifier(encoded: [0x2B, 0x65, 0x70]),
    ObjectIdentifier(encoded: [0x2B, 0x65, 0x71]),
  ]

  /// Returns why OpenSSL must not parse `spki`, a `SubjectPublicKeyInfo`; `nil` if it may.
  static func fault(of spki: ArraySlice<UInt8>) -> String? {
    var outer = ASN1Reader(spki)
    do throws(ASN1Error) {
      var info = try outer.enter(.sequence)
      try outer.end()
      var algorithm = try info.enter(.sequence)
      let identifier = try algorithm.objectIdentifier()
      guard known.contains(identifier) else { return "its key is of the unknown kind \(identifier)" }
      guard identifier != .ellipticCurveKey || algorithm.nextTag == .objectIdentifier else {
        return "its key is on a curve without a name"
      }
      return nil
    } catch {
      return "its key is malformed: \(error)"
    }
  }
}
