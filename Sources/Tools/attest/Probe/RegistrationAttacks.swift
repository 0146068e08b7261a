internal import Commands
internal import SimulatedDevice

extension Attack {
  /// Bodies that register nothing on any platform.
  static let registrations: [Attack] = [
    Attack(.registration, "a body that is no JSON", [400]) { prober throws(Failure) in
      try await prober.post("{\"keyId\":")
    },
    Attack(.registration, "a body of 65 KiB", [413]) { prober throws(Failure) in
      try await prober.post("{\"keyId\":\"" + String(repeating: "A", count: 65 << 10) + "\"}")
    },
  ]

  /// Attempts to register a key with App Attest that no genuine device has.
  static let attestations: [Attack] = [
    Attack(.registration, "an attestation of an unknown authority", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let device = try prober.unregisteredDevice()
      return try await prober.register(
        device, attestation: device.attestation(over: nonce, by: Prober.unknownAuthority(for: prober.app.appID)),
        nonce: nonce)
    },
    attack("a key that is registered", [409]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      return try await prober.register(
        prober.iPhone, attestation: prober.iPhone.attestation(over: nonce, by: prober.authority), nonce: nonce)
    },
    attack("another app's attestation", [403]) { prober throws(Failure) in
      let app = SimulatedApp(appID: "ZZZZZ99999.com.example.other", environment: .development, claims: nil)
      let nonce = try await prober.challenge()
      let device = try prober.unregisteredDevice()
      return try await prober.register(
        device, attestation: device.attestation(over: nonce, by: prober.authority, app: app), nonce: nonce)
    },
    attack("an attestation for another nonce", [401]) { prober throws(Failure) in
      let device = try prober.unregisteredDevice()
      let attestation = try device.attestation(over: try await prober.challenge(), by: prober.authority)
      return try await prober.register(device, attestation: attestation, nonce: prober.challenge())
    },
    attack("an attestation under another's key id", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let device = try prober.unregisteredDevice()
      return try await prober.register(
        device, attestation: device.attestation(over: nonce, by: prober.authority), nonce: nonce,
        keyID: prober.unregisteredDevice().keyID)
    },
    attack("an attestation that was cut", [400]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let device = try prober.unregisteredDevice()
      let attestation = try device.attestation(over: nonce, by: prober.authority)
      return try await prober.register(device, attestation: Array(attestation.dropLast(100)), nonce: nonce)
    },
    attack("an attestation for a nonce that the gate did not issue", [401]) { prober throws(Failure) in
      let nonce = String(repeating: "0123456789abcdef", count: 4)
      let device = try prober.unregisteredDevice()
      return try await prober.register(
        device, attestation: device.attestation(over: nonce, by: prober.authority), nonce: nonce)
    },
  ]

  private static func attack(
    _ name: String, _ expected: [Int], run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) -> Attack { Attack(.registration, name, expected, needsDevice: true, run: run) }
}
