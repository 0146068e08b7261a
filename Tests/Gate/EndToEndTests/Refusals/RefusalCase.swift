import ByteCoding
import SimulatedDevice
import Testing
import Transport

/// One kind of refusal: the client's request, its answer, and the log entry.
struct RefusalCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let status: Int
  let code: String
  let text: String
  /// The value of `step` in the log.
  let step: String
  var configuration = GateConfiguration()
  /// Whether the gate has read the client's `Accept` before it refuses; `false` for a head that cannot be parsed.
  var knowsAccept = true
  /// Header fields that the answer must contain.
  var fields: [String: String] = [:]
  let provoke: @Sendable (Visitor) async throws -> Response

  init(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    configuration: GateConfiguration = GateConfiguration(), knowsAccept: Bool = true, fields: [String: String] = [:],
    provoke: @escaping @Sendable (Visitor) async throws -> Response
  ) {
    testDescription = "\(code): \(description)"
    (self.status, self.code, self.text, self.step) = (status, code, text, step)
    (self.configuration, self.knowsAccept, self.fields) = (configuration, knowsAccept, fields)
    self.provoke = provoke
  }

  static let all = registrations + attestations + android + upgrades + tokens + requests + environment
}

extension RefusalCase {
  static let badNonce = "Invalid or expired nonce"
  static let badKey = "The key is not registered here or did not sign this: register a new key"

  /// A registration with an attestation that breaks one rule.
  static func attestation(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    alter: @escaping @Sendable (inout TestDevice, inout AttestationAlterations) throws -> Void
  ) -> RefusalCase {
    RefusalCase(description, status, code, step, text) { visitor in
      var device = try TestDevice()
      var alterations = AttestationAlterations()
      try alter(&device, &alterations)
      let nonce = try await visitor.challenge()
      let object = try device.attestation(over: nonce, alterations)
      return try await visitor.register(device, attestation: object, nonce: nonce)
    }
  }

  /// An upgrade by a registered device with an assertion that breaks one rule.
  static func assertion(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    alter: @escaping @Sendable (inout TestDevice, inout AssertionAlterations) throws -> Void
  ) -> RefusalCase {
    RefusalCase(description, status, code, step, text) { visitor in
      var device = try await visitor.registeredDevice()
      var alterations = AssertionAlterations()
      try alter(&device, &alterations)
      let nonce = try await visitor.challenge()
      return try await visitor.refusal(of: device.headers(over: nonce, count: 1, alterations))
    }
  }

  /// An upgrade by a registered device with changed credentials.
  static func headers(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    change: @escaping @Sendable (HeaderFields) -> HeaderFields
  ) -> RefusalCase {
    RefusalCase(description, status, code, step, text) { visitor in
      let device = try await visitor.registeredDevice()
      let nonce = try await visitor.challenge()
      return try await visitor.refusal(of: change(device.headers(over: nonce)))
    }
  }
}
