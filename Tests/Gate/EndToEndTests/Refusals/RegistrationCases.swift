import AttestGate
import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

extension RefusalCase {
  static let registrations: [RefusalCase] = bodies + values + nonces + keys

  private static func body(_ description: String, _ step: String, _ text: String, json: String) -> RefusalCase {
    RefusalCase(description, 400, "malformed_json", step, text) { try await $0.register(json: json) }
  }

  private static let jsonText =
    "The body must be JSON in UTF-8: at most 256 values, 64 members an object, each once, names in ASCII"

  private static let bodies: [RefusalCase] = [
    body("no body", "json_syntax", jsonText, json: ""),
    body("a form", "json_syntax", jsonText, json: "keyId=1&nonce=2"),
    body(
      "a member twice", "json_syntax", jsonText,
      json: #"{"keyId":"x","attestation":"eA==","nonce":"y","nonce":"z"}"#),
    body("a list", "json_type", "The body must be a JSON object", json: "[]"),
    body("no attestation", "json_member", "attestation is missing", json: #"{"keyId":"x","nonce":"y"}"#),
    body(
      "a nonce that is a number", "json_type", "nonce must be a string",
      json: #"{"keyId":"x","attestation":"eA==","nonce":1}"#),
  ]

  private static let values: [RefusalCase] = [
    RefusalCase(
      "a key id of 31 bytes", 400, "malformed_value", "registration_value_malformed",
      "keyId must be the base64 of 32 bytes"
    ) {
      let nonce = try await $0.challenge()
      return try await $0.register(
        keyID: Base64.encode([UInt8](repeating: 1, count: 31)), attestation: "eA==", nonce: nonce)
    },
    RefusalCase(
      "an attestation in both alphabets of base64", 400, "malformed_value", "registration_value_malformed",
      "attestation must be base64"
    ) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      return try await $0.register(keyID: device.keyID, attestation: "_/8=", nonce: nonce)
    },
  ]

  private static let nonces: [RefusalCase] = [
    RefusalCase("a nonce in capitals", 401, "nonce_invalid", "nonce_form", badNonce) {
      let device = try TestDevice()
      let nonce = try await $0.challenge().uppercased()
      return try await $0.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
    },
    RefusalCase("a nonce with a changed last digit", 401, "nonce_invalid", "nonce_code", badNonce) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      let forged = nonce.dropLast() + (nonce.last == "0" ? "1" : "0")
      return try await $0.register(device, attestation: device.attestation(over: String(forged)), nonce: String(forged))
    },
    RefusalCase(
      "a nonce of another gate", 401, "nonce_invalid", "nonce_key_unknown", badNonce,
      configuration: ForeignNonces.configuration
    ) { try await ForeignNonces.register(with: $0, ForeignNonces.otherKey, age: .zero) },
    RefusalCase(
      "a nonce from 61 seconds ago", 401, "nonce_expired", "nonce_age", badNonce,
      configuration: ForeignNonces.configuration
    ) { try await ForeignNonces.register(with: $0, ForeignNonces.own, age: .seconds(61)) },
    RefusalCase(
      "a nonce from tomorrow", 401, "nonce_invalid", "nonce_future", badNonce,
      configuration: ForeignNonces.configuration
    ) { try await ForeignNonces.register(with: $0, ForeignNonces.own, age: .seconds(-86400)) },
    RefusalCase("a nonce that registered another key", 401, "nonce_used", "nonce_spent", badNonce) {
      let (first, second) = (try TestDevice(), try TestDevice())
      let nonce = try await $0.challenge()
      _ = try await $0.register(first, attestation: first.attestation(over: nonce), nonce: nonce)
      return try await $0.register(second, attestation: second.attestation(over: nonce), nonce: nonce)
    },
  ]

  private static let keys: [RefusalCase] = [
    RefusalCase(
      "another attestation of the same key", 409, "key_exists", "key_exists",
      "The key is registered already: register a new key"
    ) {
      let device = try await $0.registeredDevice()
      let nonce = try await $0.challenge()
      return try await $0.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
    },
    RefusalCase(
      "a repeated registration of a key that was revoked", 403, "key_revoked", "key_revoked",
      "The key has been revoked: ask the operator of this service"
    ) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      let object = try device.attestation(over: nonce)
      _ = try await $0.register(device, attestation: object, nonce: nonce)
      try StateFile(of: $0.gate).revoke(device)
      return try await $0.register(device, attestation: object, nonce: nonce)
    },
    RefusalCase(
      "an app from a source that is not allowed", 403, "category_refused", "validation_category",
      "Installations of the app from this source are not accepted",
      configuration: GateConfiguration(categories: ["app_store"])
    ) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      return try await $0.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
    },
  ]
}

/// Nonces that the test issues with the keys of a gate or with other keys.
private enum ForeignNonces {
  static let own = "1 " + String(repeating: "a7", count: 32)
  static let otherKey = "2 " + String(repeating: "5c", count: 32)
  static let configuration = GateConfiguration(challengeTTL: "60s", challengeKeys: own + "\n")

  static func register(with visitor: Visitor, _ key: String, age: Duration) async throws -> Response {
    let challenges = Challenges(ring: try ChallengeKeyRing(text: key))
    guard let nonce = challenges.issue(at: Timestamp.now().advanced(by: .zero - age))?.nonce.text else {
      throw NoSuchEntry(line: "no nonce")
    }
    visitor.remember(nonce)
    let device = try TestDevice()
    return try await visitor.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
  }
}
