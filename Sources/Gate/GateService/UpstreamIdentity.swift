internal import AttestGate
internal import ByteCoding
internal import Transport

/// The header fields that identify the admitted client.
struct UpstreamIdentity: Sendable {
  /// The names of all identity fields. Code that copies these fields from one message to another must overwrite every
  /// one.
  static let names = ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method"]

  private let values: [String?]

  /// - Parameter assertion: The assertion of `IdentityIssuer`; `nil` for a client without a proved identity.
  init(of principal: Principal, assertion: String?) {
    if case .device(let device) = principal {
      values = [assertion, device.keyHash.text, device.app.text, principal.method]
    } else {
      values = [assertion, nil, nil, principal.method]
    }
  }

  /// Calls `body` with the fields that have a value.
  func forEach(_ body: (_ name: String, _ value: String) -> Void) {
    for (index, name) in Self.names.enumerated() {
      if let value = values[index] { body(name, value) }
    }
  }

  /// Appends all fields, with empty values where there is none. `nil` means no known identity.
  static func appendAll(of identity: UpstreamIdentity?, to fields: inout HeaderFields) {
    for (index, name) in names.enumerated() { fields.append(name, identity?.values[index] ?? "") }
  }
}

extension PeerCertificate {
  /// The value of `Client-Cert`: the certificate as a Byte Sequence (RFC 9440 section 2.2).
  var fieldValue: String { ":" + Base64.encode(der) + ":" }
}
