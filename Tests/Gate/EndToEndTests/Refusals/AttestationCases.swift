import ByteCoding
import Cryptography
import SimulatedDevice

extension RefusalCase {
  static let attestations: [RefusalCase] = formats + chains + bindings + receipts

  private static func malformed(
    _ description: String, step: String = "attestation_format",
    alter: @escaping @Sendable (inout TestDevice, inout AttestationAlterations) throws -> Void
  ) -> RefusalCase {
    attestation(
      description, 400, "malformed_attestation", step,
      "The attestation is malformed: send what attestKey returned, in base64", alter: alter)
  }

  private static let formats: [RefusalCase] = [
    malformed("another format") { $1.statement = { $0.format = "packed" } },
    malformed("an additional member") { $1.statement = { $0.additions = [("more", [])] } },
    malformed("a trailing byte") { $1.statement = { $0.trailer = [0] } },
    malformed("a root in the chain") {
      let root = $0.authority.attestationRoot.certificate.der
      $1.statement = { $0.chain.append(root) }
    },
    malformed("a leaf that is not a certificate") { $1.statement = { $0.chain[0] = [0x30, 0x00] } },
    malformed("extensions that are not a map", step: "attestation_extensions") {
      $1.authenticatorData = { $0.extensions = [0x80] }
    },
    malformed("a receipt that is not a CMS message", step: "attestation_receipt_format") {
      $1.statement = { $0.receipt = [0x30, 0x00] }
    },
  ]

  private static func untrusted(
    _ description: String,
    alter: @escaping @Sendable (inout TestDevice, inout AttestationAlterations) throws -> Void
  ) -> RefusalCase {
    attestation(
      description, 401, "chain_untrusted", "attestation_certificate_chain",
      "The attestation's certificates do not chain to a trusted root", alter: alter)
  }

  private static let chains: [RefusalCase] = [
    untrusted("a leaf of an authority that is not pinned") {
      $1.leafIssuer = try TestAuthority(appID: GateConfiguration.appID, at: .now()).attestationIntermediate
    },
    untrusted("a leaf from the authority for receipts") { $1.leafIssuer = $0.authority.receiptIntermediate },
    untrusted("a leaf that is an authority") {
      $1.leaf = { $0.extensions[0] = .basicConstraints(isAuthority: true) }
    },
    attestation(
      "a leaf that expired yesterday", 401, "cert_expired", "attestation_certificate_chain",
      "A certificate of the attestation is not valid now: attest a new key"
    ) { $1.leaf = { $0.notAfter = Timestamp.now().advanced(by: .seconds(-86000)) } },
  ]

  private static let bindings: [RefusalCase] = [
    attestation(
      "authenticator data other than the attested data", 401, "nonce_mismatch", "attestation_nonce",
      "The attestation was made for another challenge: sign SHA-256 of the nonce's 32 bytes"
    ) { $1.statement = { $0.authenticatorData[33] ^= 0x01 } },
    attestation(
      "a credential with another id", 401, "key_id_mismatch", "attestation_credential_id",
      "The attestation is for a different key than keyId"
    ) { $1.authenticatorData = { $0.credential?.credentialID = [UInt8](repeating: 0, count: 32) } },
    attestation(
      "another team's app of the same name", 403, "rp_id_mismatch", "attestation_rp_id",
      "rpIdHash does not match bundleId"
    ) { device, _ in device.app.appID = "SALLYPORT2.com.example.app" },
    attestation(
      "a counter of one", 401, "counter_replayed", "attestation_counter",
      "The key has signed already: attest a new key"
    ) { $1.authenticatorData = { $0.signCount = 1 } },
    attestation(
      "a key from production", 403, "environment_mismatch", "attestation_environment",
      "Keys of this App Attest environment are not accepted"
    ) { device, _ in device.app.environment = .production },
  ]

  private static func receipt(
    _ description: String, _ step: String,
    alter: @escaping @Sendable (inout TestDevice, inout AttestationAlterations) throws -> Void
  ) -> RefusalCase {
    attestation(
      description, 401, "receipt_refused", "attestation_receipt_" + step,
      "The attestation's receipt is of another key or app, or too old: attest a new key", alter: alter)
  }

  private static let receipts: [RefusalCase] = [
    receipt("a receipt for another app", "app_id") {
      $1.receipt = { $0[text: 2] = "SALLYPORT1.com.example.other" }
    },
    receipt("a receipt with an untrusted signer", "certificate_chain") {
      let otherAuthority = try TestAuthority(appID: GateConfiguration.appID, at: .now())
      $1.receiptSigner = otherAuthority.receiptSigner
      $1.receiptMessage = {
        $0.certificates = [
          otherAuthority.receiptSigner, otherAuthority.receiptIntermediate, otherAuthority.receiptRoot,
        ]
        .map(\.certificate)
      }
    },
    // Apple's time, together with a fresh nonce, says that the gate's clock is wrong.
    attestation(
      "a receipt from six minutes ago", 503, "clock_wrong", "attestation_receipt_freshness",
      "The clock of this gate is wrong: try again later"
    ) {
      $1.receipt = { $0.setTimes(created: Timestamp.now().advanced(by: .seconds(-360))) }
    },
    receipt("a receipt from last year", "expiry") {
      $1.receipt = { $0.setTimes(created: Timestamp.now().advanced(by: .seconds(-365 * 86400))) }
    },
  ]
}
