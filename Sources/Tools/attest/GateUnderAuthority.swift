internal import ByteCoding
internal import Cryptography
internal import SimulatedDevice

/// The gate at an address under one authority: a device registers one key for each.
///
/// `sallyport dev` in another folder is another gate with its own roots, although its address is the same. The
/// device's key at the first gate must not be sent to the second: it would be refused and replaced, once an hour.
struct GateUnderAuthority: Sendable, Hashable {
  /// `host:port`.
  let gate: String
  /// The first 16 hex digits of the fingerprint of the root that replaces Apple's.
  let authority: String

  init(gate: String, _ authority: TestAuthority) {
    self.gate = gate
    self.authority = String(Hex.encode(authority.attestationRoot.certificate.fingerprint).prefix(16))
  }

  /// Parses `fileName`; `nil` if it has another form.
  init?(fileName: String) {
    let parts = fileName.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, parts[1].utf8.count == 16 else { return nil }
    (gate, authority) = (String(parts[0]), String(parts[1]))
  }

  /// Without its end: no host name has an `@`.
  var fileName: String { "\(gate)@\(authority)" }
}
