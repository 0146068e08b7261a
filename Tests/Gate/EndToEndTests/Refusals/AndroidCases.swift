import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

extension RefusalCase {
  static let android: [RefusalCase] = chains + proofs

  /// A registration with a chain that breaks one rule.
  private static func chain(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ rules: String,
    _ configuration: AndroidConfiguration = AndroidConfiguration(),
    change: @escaping @Sendable (inout AndroidMint) throws -> Void = { _ in }
  ) -> RefusalCase {
    RefusalCase(
      description, status, code, step, "The attestation is refused: \(rules)",
      configuration: GateConfiguration(android: configuration)
    ) { visitor in
      var device = try AndroidDevice()
      try change(&device.mint)
      return try await visitor.register(device, nonce: try await visitor.challenge())
    }
  }

  private static let chains: [RefusalCase] = [
    chain("a chain of one certificate", 400, "malformed_attestation", "android_format", "chain_length") {
      $0.certificates = [$0.certificates[0]]
      $0.certificates[0].extensions = []
      $0.attests = false
    },
    chain("an Android app that others signed", 403, "app_refused", "android_app", "signer_differs") {
      $0.description.software[709] = MintedKeyDescription.application(
        packages: [AndroidMint.package], signers: [SHA256.hash([1])])
    },
    chain(
      "an unlocked boot loader", 403, "device_refused", "android_boot", "device_unlocked, boot_unverified"
    ) {
      $0.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 0, state: 2)
    },
    chain(
      "a key in the trusted environment where StrongBox is required", 403, "device_refused", "android_security_level",
      "security_level_too_low", AndroidConfiguration(policy: "security_level: strongbox")),
    chain(
      "a revoked certificate", 403, "attestation_revoked", "android_revocation", "revoked[1]",
      AndroidConfiguration(
        statusList: "{ status_list: \(AndroidConfiguration.listFile) }",
        list: (try? AndroidConfiguration.batch.get()).map {
          AndroidConfiguration.list([$0.certificates[1].serialNumber])
        })),
    chain("a foreign root", 401, "chain_untrusted", "android_root", "root_unknown") {
      $0 = try AndroidMint.factory()
    },
    RefusalCase(
      "no list of revoked certificates yet", 503, "status_list_unavailable", "status_list_unavailable",
      "The list of revoked certificates is unavailable: try again later",
      configuration: GateConfiguration(
        android: AndroidConfiguration(statusList: "{ status_list: \"https://127.0.0.1:1/status\" }")),
      fields: ["Retry-After": "60"]
    ) { visitor in
      try await visitor.register(try AndroidDevice(), nonce: try await visitor.challenge())
    },
    RefusalCase(
      "an Android device at a gate for iOS", 503, "not_configured", "android_not_configured",
      "Server not configured for Android"
    ) { visitor in
      try await visitor.register(try AndroidDevice(), nonce: try await visitor.challenge())
    },
    RefusalCase(
      "an unknown platform", 400, "malformed_json", "platform", "platform must be ios or android"
    ) { visitor in
      try await visitor.register(json: #"{"platform":"windows","chain":[],"nonce":"x"}"#)
    },
    RefusalCase(
      "a chain that is no list", 400, "malformed_json", "json_type", "chain must be a list of strings"
    ) { visitor in
      try await visitor.register(json: #"{"platform":"android","chain":["x",1],"nonce":"x"}"#)
    },
  ]

  private static let proofs: [RefusalCase] = [
    RefusalCase(
      "a signature of another Android key", 401, "key_refused", "android_signature", badKey,
      configuration: GateConfiguration(android: AndroidConfiguration())
    ) { visitor in
      let device = try await visitor.registeredAndroidDevice()
      let other = try AndroidDevice()
      let nonce = try await visitor.challenge()
      let fields = try other.headers(over: nonce).fields.map { field in
        field.name == "X-App-Assert-KeyId" ? .init(name: field.name, value: device.keyID) : field
      }
      return try await visitor.refusal(of: .init(fields))
    },
    RefusalCase(
      "an assertion under the name of an Android key", 401, "key_refused", "platform", badKey,
      configuration: GateConfiguration(android: AndroidConfiguration())
    ) { visitor in
      let device = try await visitor.registeredAndroidDevice()
      let other = try await visitor.registeredDevice()
      let nonce = try await visitor.challenge()
      let fields = try other.headers(over: nonce).fields.map { field in
        field.name == "X-App-Assert-KeyId" ? .init(name: field.name, value: device.keyID) : field
      }
      return try await visitor.refusal(of: .init(fields))
    },
    RefusalCase(
      "a proof of an Android key sent again", 401, "nonce_used", "nonce_spent", badNonce,
      configuration: GateConfiguration(android: AndroidConfiguration())
    ) { visitor in
      let device = try await visitor.registeredAndroidDevice()
      let headers = try device.headers(over: try await visitor.challenge())
      // The upstream is not there, and the nonce is spent.
      _ = try await visitor.refusal(of: headers)
      return try await visitor.refusal(of: headers)
    },
  ]
}
