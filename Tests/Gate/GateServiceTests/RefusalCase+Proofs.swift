import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import GateService
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

extension RefusalCase {
  static let registrations = [
    RefusalCase(
      "a key id that is not base64", 400, "malformed_value", "keyId must be the base64 of 32 bytes",
      step: "registration_value_malformed",
      asking(.plain("POST", "/attest/register", body: #"{"keyId":"x","attestation":"AAAA","nonce":""}"#))),
    RefusalCase(
      "an attestation with an additional byte", 400, "malformed_attestation",
      "The attestation is malformed: send what attestKey returned, in base64", step: "attestation_format",
      registering { device, _ in device.attestations.alterations.statement = { $0.trailer = [0] } }),
    RefusalCase(
      "an attestation under another root", 401, "chain_untrusted",
      "The attestation's certificates do not chain to a trusted root", step: "attestation_certificate_chain",
      registering { device, bench in
        let otherAuthority = try TestAuthority(appID: GateBench.appID, at: bench.clock.now)
        device.attestations.alterations.leafIssuer = otherAuthority.attestationIntermediate
      }),
    RefusalCase(
      "an attestation whose leaf has expired", 401, "cert_expired",
      "A certificate of the attestation is not valid now: attest a new key", step: "attestation_certificate_chain",
      registering { device, bench in
        let end = bench.clock.now.advanced(by: .seconds(-1))
        device.attestations.alterations.leaf = { $0.notAfter = end }
      }),
    RefusalCase(
      "an attestation for another challenge", 401, "nonce_mismatch",
      "The attestation was made for another challenge: sign SHA-256 of the nonce's 32 bytes", step: "attestation_nonce",
      registering { device, _ in device.attestations.alterations.statement = { $0.authenticatorData[36] ^= 1 } }),
    RefusalCase(
      "an attestation with another credential id", 401, "key_id_mismatch",
      "The attestation is for a different key than keyId", step: "attestation_credential_id",
      registering { device, _ in
        device.attestations.alterations.authenticatorData = { $0.credential?.credentialID[0] ^= 1 }
      }),
    RefusalCase(
      "an attestation for another app", 403, "rp_id_mismatch", "rpIdHash does not match bundleId",
      step: "attestation_rp_id",
      registering { device, _ in device.attestations.alterations.authenticatorData = { $0.rpIDHash[0] ^= 1 } }),
    RefusalCase(
      "an attestation with a counter", 401, "counter_replayed",
      "The key has signed already: attest a new key", step: "attestation_counter",
      registering { device, _ in device.attestations.alterations.authenticatorData = { $0.signCount = 1 } }),
    RefusalCase(
      "an attestation from production", 403, "environment_mismatch",
      "Keys of this App Attest environment are not accepted", step: "attestation_environment",
      registering { device, bench in device = try bench.device(environment: .production) }),
    RefusalCase(
      "an attestation with another app's receipt", 401, "receipt_refused",
      "The attestation's receipt is of another key or app, or too old: attest a new key",
      step: "attestation_receipt_app_id",
      registering { device, _ in
        device.attestations.alterations.receipt = { $0[text: 2] = "AAABBBCCC1.com.example.other" }
      }),
    RefusalCase(
      "an attestation with a receipt of another time", 503, "clock_wrong",
      "The clock of this gate is wrong: try again later", step: "attestation_receipt_freshness",
      registering { device, bench in
        let created = bench.clock.now.advanced(by: .seconds(-301))
        device.attestations.alterations.receipt = { $0[text: 12] = created.description }
      }),
    RefusalCase(
      "a second registration of a key", 409, "key_exists",
      "The key is registered already: register a new key", step: "key_exists",
      registering { device, bench in try await bench.register(device) }),
    RefusalCase(
      "the same registration after the key was revoked", 403, "key_revoked",
      "The key has been revoked: ask the operator of this service", step: "key_revoked"
    ) {
      let bench = try GateBench()
      let device = try bench.device()
      let claim = try device.registration(over: bench.nonce(), at: bench.clock.now)
      _ = try await bench.registrar.register(claim)
      _ = try await bench.store.revoke(device.keyID, at: bench.clock.now)
      return (try ServiceBench(bench), try .registration(claim))
    },
    RefusalCase(
      "an installation from a source that is not allowed", 403, "category_refused",
      "Installations of the app from this source are not accepted", step: "validation_category",
      registering(
        apps: AppID(GateBench.appID).map { appID in
          let policy = CategoryPolicy(allowed: [.appStore], whenMissing: .refuse)
          return [AppPolicy(appID: appID, environments: [.development], categories: policy)]
        }
      ) { _, _ in }),
  ]

  static let admissions = [
    RefusalCase(
      "an upgrade with nothing", 401, "no_credentials",
      "No credentials: send X-App-Assert-KeyId, X-App-Assert-Data and X-App-Assert-Nonce", step: "no_credentials",
      asking(.upgrade())),
    RefusalCase(
      "an upgrade without the assertion", 400, "malformed_header", "X-App-Assert-Data is missing",
      step: "assertion_part_missing", upgrading { _, _, headers in headers.without(.data) }),
    RefusalCase(
      "an upgrade with two key ids", 400, "malformed_header", "X-App-Assert-KeyId was sent more than once",
      step: "assertion_part_repeated",
      upgrading { device, _, headers in headers + [("x-app-assert-keyid", device.keyID.base64)] }),
    RefusalCase(
      "an upgrade with an assertion that is not base64", 400, "malformed_header",
      "X-App-Assert-Data must be base64", step: "assertion_part_malformed",
      upgrading { _, _, headers in headers.replacing(.data, with: "-") }),
    RefusalCase(
      "an upgrade with an assertion that is not CBOR", 400, "malformed_assertion",
      "The assertion is malformed: send what generateAssertion returned, in base64", step: "assertion_format",
      upgrading { _, _, headers in headers.replacing(.data, with: "AAAA") }),
    RefusalCase(
      "an upgrade with an unknown key", 401, "key_refused",
      "The key is not registered here or did not sign this: register a new key", step: "key_unknown",
      upgrading { _, bench, _ in try bench.device().fields(over: bench.nonce(), count: 1) }),
    RefusalCase(
      "an upgrade with another device's key id", 401, "key_refused",
      "The key is not registered here or did not sign this: register a new key", step: "assertion_signature",
      upgrading { device, bench, _ in
        try await bench.registeredDevice().fields(over: bench.nonce(), count: 1)
          .replacing(.keyID, with: device.keyID.base64)
      }),
    RefusalCase(
      "an upgrade with an assertion for another app", 403, "rp_id_mismatch",
      "rpIdHash does not match bundleId", step: "assertion_rp_id",
      upgrading { device, bench, _ in
        var device = device
        device.assertions = AssertionMint(app: SimulatedApp(appID: "AAABBBCCC1.com.example.other"))
        return try device.fields(over: bench.nonce(), count: 1)
      }),
    RefusalCase(
      "an upgrade with a used counter", 401, "counter_replayed",
      "The key's counter was seen before: make a new assertion for each connection", step: "assertion_counter",
      upgrading { device, bench, headers in
        _ = try await bench.gate.admit(try device.claim(over: try bench.nonce(), count: 1))
        return headers
      }),
    RefusalCase(
      "an upgrade with a revoked key", 403, "key_revoked",
      "The key has been revoked: ask the operator of this service", step: "key_revoked",
      upgrading { device, bench, headers in
        _ = try await bench.store.revoke(device.keyID, at: bench.clock.now)
        return headers
      }),
    RefusalCase(
      "an upgrade with a metric above the threshold", 403, "risk_too_high",
      "Too many keys were made on this device: ask the operator of this service", step: "risk_too_high",
      assessed(6, by: RiskPolicy(threshold: 5, action: .refuse))),
    RefusalCase(
      "an upgrade without a metric", 503, "risk_unknown", "The key is new and still being examined: try again later",
      step: "risk_unknown", assessed(nil, by: RiskPolicy(threshold: nil, whenUnknown: .refuse))),
    RefusalCase(
      "an upgrade with an outdated metric", 401, "risk_outdated",
      "The examination of the key is out of date: register a new key", step: "risk_outdated",
      assessed(1, isOutdated: true, by: RiskPolicy(threshold: nil, whenUnknown: .refuse))),
  ]
}
