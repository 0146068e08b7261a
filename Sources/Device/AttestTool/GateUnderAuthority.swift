internal import ByteCoding
internal import Cryptography
internal import SimulatedDevice

/// The gate at an address under one authority: what a device's key is registered with.
///
/// `sallyport dev` in another folder is another gate, with roots of its own, although its address is the same. The
/// key that the device has with the first gate must not be sent to the second: it would be refused, given up, and
/// replaced once an hour.
struct GateUnderAuthority: Sendable, Hashable {
  /// `host:port`.
  let gate: String
  /// The first 16 hex digits of the fingerprint of the root that stands for Apple's.
  let authority: String

  init(gate: String, _ authority: TestAuthority) {
    self.gate = gate
    self.authority = String(Hex.encode(authority.attestationRoot.certificate.fingerprint).prefix(16))
  }

  /// What `fileName` names; `nil` if it is no such name.
  init?(fileName: String) {
    let parts = fileName.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, parts[1].utf8.count == 16 else { return nil }
    (gate, authority) = (String(parts[0]), String(parts[1]))
  }

  /// Without its end: no host name has an `@`.
  var fileName: String { "\(gate)@\(authority)" }
}
