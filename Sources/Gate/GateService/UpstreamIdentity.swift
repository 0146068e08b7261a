internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Transport

/// The header fields by which a gate says who was let in.
struct UpstreamIdentity: Sendable {
  /// Every name that the gate speaks by about an admission. Who copies these fields from one message into another has
  /// to overwrite each.
  static let names = ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method"]

  private let values: [String?]

  /// - Parameter assertion: see `IdentityIssuer`; `nil` where there is no identity to sign.
  init(of principal: Principal, assertion: String?) {
    if case .device(let device) = principal {
      values = [assertion, KeyHash(of: device.keyID).text, device.appID.text, principal.method]
    } else {
      values = [assertion, nil, nil, principal.method]
    }
  }

  /// Those fields that have something to say.
  func append(to fields: inout HeaderFields) {
    for (name, value) in zip(Self.names, values) {
      if let value { fields.append(name, value) }
    }
  }

  /// All fields, those that have nothing to say empty. `nil` is an identity of which nothing is known.
  static func appendAll(of identity: UpstreamIdentity?, to fields: inout HeaderFields) {
    for (index, name) in names.enumerated() { fields.append(name, identity?.values[index] ?? "") }
  }
}

extension PeerCertificate {
  /// The value of `Client-Cert`: the certificate as a Byte Sequence (RFC 9440 section 2.2).
  var fieldValue: String { ":" + Base64.encode(der) + ":" }
}
