internal import AttestGate
internal import ByteCoding
internal import Transport

/// The header fields that identify the admitted client.
struct UpstreamIdentity: Sendable {
  private let assertion: String?
  private let key: String?
  private let app: String?
  private let method: String?

  /// - Parameter assertion: The assertion of `IdentityIssuer`; `nil` for a client without a proved identity.
  init(of principal: Principal, assertion: String?) {
    self.assertion = assertion
    method = principal.method
    if case .device(let device) = principal {
      (key, app) = (device.keyHash.text, device.app.text)
    } else {
      (key, app) = (nil, nil)
    }
  }

  /// Calls `body` with the fields that have a value.
  func forEach(_ body: (_ name: String, _ value: String) -> Void) {
    Self.forEach(of: self) { name, value in if let value { body(name, value) } }
  }

  /// Appends all fields, with empty values where there is none. `nil` means no known identity.
  static func appendAll(of identity: UpstreamIdentity?, to fields: inout HeaderFields) {
    forEach(of: identity) { name, value in fields.append(name, value ?? "") }
  }

  /// Calls `body` with every identity field. Code that copies them from one message to another must overwrite each one.
  private static func forEach(of identity: UpstreamIdentity?, _ body: (_ name: String, _ value: String?) -> Void) {
    body("X-Attest-Assertion", identity?.assertion)
    body("X-Attest-Key-Id", identity?.key)
    body("X-Attest-App", identity?.app)
    body("X-Attest-Method", identity?.method)
  }
}

extension PeerCertificate {
  /// The value of `Client-Cert`: the certificate as a Byte Sequence (RFC 9440 section 2.2).
  var fieldValue: String { ":" + Base64.encode(der) + ":" }
}
