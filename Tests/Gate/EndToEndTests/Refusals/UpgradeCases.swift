import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

extension RefusalCase {
  static let upgrades: [RefusalCase] = credentials + assertions + history

  private static func malformed(
    _ description: String, _ step: String, _ text: String, change: @escaping @Sendable (HeaderFields) -> HeaderFields
  ) -> RefusalCase {
    headers(description, 400, "malformed_header", step, text, change: change)
  }

  private static let credentials: [RefusalCase] = [
    RefusalCase(
      "no headers", 401, "no_credentials", "no_credentials",
      "No credentials: send X-App-Assert-KeyId, X-App-Assert-Data and X-App-Assert-Nonce"
    ) { try await $0.refusal() },
    malformed("no nonce", "assertion_part_missing", "X-App-Assert-Nonce is missing") {
      $0.without(HeaderFields.nonceName)
    },
    malformed("a key id alone", "assertion_part_missing", "X-App-Assert-Data is missing") {
      $0.without(HeaderFields.nonceName).without(HeaderFields.dataName)
    },
    malformed("two nonces", "assertion_part_repeated", "X-App-Assert-Nonce was sent more than once") {
      $0.with(HeaderFields.nonceName, String(repeating: "0", count: 64))
    },
    malformed("the same key id twice", "assertion_part_repeated", "X-App-Assert-KeyId was sent more than once") {
      $0.with(HeaderFields.keyIDName.lowercased(), $0.first(named: HeaderFields.keyIDName) ?? "")
    },
    malformed(
      "a key id in both alphabets of base64", "assertion_part_malformed",
      "X-App-Assert-KeyId must be the base64 of 32 bytes"
    ) {
      $0.without(HeaderFields.keyIDName).with(HeaderFields.keyIDName, String(repeating: "-/", count: 21) + "A=")
    },
    malformed("data that is not base64", "assertion_part_malformed", "X-App-Assert-Data must be base64") {
      $0.without(HeaderFields.dataName).with(HeaderFields.dataName, "!")
    },
    headers("a nonce of 62 digits", 401, "nonce_invalid", "nonce_form", badNonce) {
      let nonce = $0.first(named: HeaderFields.nonceName) ?? ""
      return $0.without(HeaderFields.nonceName).with(HeaderFields.nonceName, String(nonce.dropLast(2)))
    },
    headers("a nonce with a changed digit at its start", 401, "nonce_invalid", "nonce_code", badNonce) {
      let nonce = $0.first(named: HeaderFields.nonceName) ?? ""
      // The fifth digit belongs to the time; the first two are the number of the key.
      let digit = nonce.dropFirst(4).first == "0" ? "1" : "0"
      let forged = "\(nonce.prefix(4))\(digit)\(nonce.dropFirst(5))"
      return $0.without(HeaderFields.nonceName).with(HeaderFields.nonceName, forged)
    },
  ]

  private static func malformedAssertion(
    _ description: String, step: String = "assertion_format",
    alter: @escaping @Sendable (inout TestDevice, inout AssertionAlterations) throws -> Void
  ) -> RefusalCase {
    assertion(
      description, 400, "malformed_assertion", step,
      "The assertion is malformed: send what generateAssertion returned, in base64", alter: alter)
  }

  private static let assertions: [RefusalCase] = [
    malformedAssertion("no signature") { $1.statement = { $0.signature = nil } },
    malformedAssertion("an additional member") { $1.statement = { $0.additions = [("more", [])] } },
    malformedAssertion("a trailing byte") { $1.statement = { $0.trailer = [0] } },
    malformedAssertion("authenticator data cut off") {
      $1.statement = { $0.authenticatorData = Array($0.authenticatorData.prefix(36)) }
    },
    malformedAssertion("a byte after the extensions", step: "assertion_extensions") {
      $1.authenticatorData = { $0.extensions.append(0) }
    },
    assertion("a counter changed after signing", 401, "key_refused", "assertion_signature", badKey) {
      $1.statement = { $0.authenticatorData[36] += 1 }
    },
    assertion("an assertion by another key", 401, "key_refused", "assertion_signature", badKey) {
      let other = try TestDevice()
      let nonceless = SHA256.hash([1])
      $1.statement = { $0.signature = try? other.key.signature(for: $0.authenticatorData + nonceless) }
    },
    assertion(
      "another app of the same device", 403, "rp_id_mismatch", "assertion_rp_id", "rpIdHash does not match bundleId"
    ) { device, _ in device.app.appID = "SALLYPORT1.com.example.other" },
    assertion(
      "a counter of zero", 401, "counter_replayed", "assertion_counter",
      "The key's counter was seen before: make a new assertion for each connection"
    ) { $1.authenticatorData = { $0.signCount = 0 } },
  ]

  private static let history: [RefusalCase] = [
    RefusalCase("an unregistered key", 401, "key_refused", "key_unknown", badKey) {
      try await $0.refusal(of: TestDevice().headers(over: $0.challenge()))
    },
    RefusalCase("a nonce that registered the key", 401, "nonce_used", "nonce_spent", badNonce) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      _ = try await $0.register(device, attestation: device.attestation(over: nonce), nonce: nonce)
      return try await $0.refusal(of: device.headers(over: nonce))
    },
    RefusalCase(
      "a revoked key", 403, "key_revoked", "key_revoked", "The key has been revoked: ask the operator of this service"
    ) {
      let device = try await $0.registeredDevice()
      try StateFile(of: $0.gate).revoke(device)
      return try await $0.refusal(of: device.headers(over: $0.challenge()))
    },
    RefusalCase(
      "a metric above the threshold", 403, "risk_too_high", "risk_too_high",
      "Too many keys were made on this device: ask the operator of this service",
      configuration: GateConfiguration(risk: "threshold: 5, action: refuse")
    ) {
      let device = try await $0.registeredDevice()
      try StateFile(of: $0.gate).assess(device, 6)
      return try await $0.refusal(of: device.headers(over: $0.challenge()))
    },
    RefusalCase(
      "a key without a metric", 503, "risk_unknown", "risk_unknown",
      "The key is new and still being examined: try again later",
      configuration: GateConfiguration(risk: "when_unknown: refuse"), fields: ["Retry-After": "60"]
    ) {
      let device = try await $0.registeredDevice()
      return try await $0.refusal(of: device.headers(over: $0.challenge()))
    },
    RefusalCase(
      "an outdated metric", 401, "risk_outdated", "risk_outdated",
      "The examination of the key is out of date: register a new key",
      configuration: GateConfiguration(risk: "when_unknown: refuse")
    ) {
      let device = try await $0.registeredDevice()
      try StateFile(of: $0.gate).assess(device, 1, isOutdated: true)
      return try await $0.refusal(of: device.headers(over: $0.challenge()))
    },
    RefusalCase(
      "a used counter", 401, "counter_replayed", "assertion_counter",
      "The key's counter was seen before: make a new assertion for each connection"
    ) {
      let device = try await $0.registeredDevice()
      // The upstream does not listen: the device is admitted, its counter is spent, and the gate answers 502.
      let admitted = try await $0.refusal(of: device.headers(over: $0.challenge(), count: 7))
      guard admitted.status == 502 else { throw Unexpected(response: admitted) }
      return try await $0.refusal(of: device.headers(over: $0.challenge(), count: 7))
    },
    RefusalCase(
      "a device whose app was updated from another source", 403, "category_refused", "validation_category",
      "Installations of the app from this source are not accepted",
      configuration: GateConfiguration(categories: ["development"])
    ) {
      var device = try await $0.registeredDevice()
      device.app.claims = AppClaims(validationCategory: 4)
      return try await $0.refusal(of: device.headers(over: $0.challenge()))
    },
  ]
}
