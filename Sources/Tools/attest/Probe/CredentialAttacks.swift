internal import ByteCoding
internal import Commands
internal import Cryptography
internal import SimulatedDevice

extension Attack {
  /// Attempts to be admitted without a proof, or with one that is no longer valid.
  static func credentials(on platform: Platform) -> [Attack] {
    // A signature of Android has no structure but DER: what is no DER is no signature of the key.
    let malformed = platform == .ios ? [400] : [400, 401]
    return requests + proofs + [
      tampered("a changed byte in the middle", [400, 401, 403]) { bytes in
        bytes.enumerated().map { $0.offset == bytes.count / 2 ? $0.element ^ 1 : $0.element }
      },
      tampered("a changed last byte", [400, 401, 403]) { bytes in
        bytes.dropLast() + (bytes.last.map { [$0 ^ 1] } ?? [])
      },
      tampered("a missing last byte", malformed) { $0.dropLast() },
      tampered("a byte behind it", malformed) { $0 + [0] },
      tampered("nothing in it", [400]) { _ in [] },
    ]
  }

  private static let requests: [Attack] = [
    Attack(.credentials, "no credentials", [401]) { prober throws(Failure) in try await prober.upgrade([]) },
    Attack(.credentials, "the gate's own words instead", [401]) { prober throws(Failure) in
      try await prober.upgrade([
        "X-Attest-Method: app-attest", "X-Attest-Key-Id: mallory", "X-Forwarded-For: 127.0.0.1",
      ])
    },
    Attack(.credentials, "a client certificate in a header", [401]) { prober throws(Failure) in
      try await prober.upgrade(["X-SSL-Client-Verify: SUCCESS", "Client-Cert: :AAAA:", "X-Client-DN: CN=Debug"])
    },
    attack("half of the credentials", [400]) { prober throws(Failure) in
      try await prober.upgrade(Array(prober.credentials().dropLast()))
    },
    attack("credentials given twice", [400]) { prober throws(Failure) in
      let lines = try await prober.credentials()
      return try await prober.upgrade(lines + lines)
    },
  ]

  private static let proofs: [Attack] = [
    attack("a proof that was used", [401]) { prober throws(Failure) in
      let lines = try await prober.credentials()
      _ = try await prober.upgrade(lines)
      return try await prober.upgrade(lines)
    },
    attack("a nonce that was used, signed again", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      _ = try await prober.upgrade(prober.device.lines(over: nonce))
      return try await prober.upgrade(prober.device.lines(over: nonce))
    },
    attack("a nonce that the gate did not issue", [401]) { prober throws(Failure) in
      try await prober.upgrade(prober.device.lines(over: Hex.encode(SecureRandom.bytes(32))))
    },
    attack("a nonce with a changed digit", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let last = nonce.last == "0" ? "1" : "0"
      return try await prober.upgrade(prober.device.lines(over: nonce.dropLast() + last))
    },
    attack("a nonce other than the signed one", [401]) { prober throws(Failure) in
      let proof = try prober.device.proof(over: try await prober.challenge())
      return try await prober.upgrade(prober.device.lines(proof, nonce: prober.challenge()))
    },
    attack("a key that is not registered", [401]) { prober throws(Failure) in
      try await prober.upgrade(prober.stranger().lines(over: prober.challenge()))
    },
    attack("another's key id", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let proof = try prober.stranger().proof(over: nonce)
      return try await prober.upgrade(prober.device.lines(proof, nonce: nonce))
    },
  ]

  /// Attempts with a key of App Attest.
  static let assertions: [Attack] = [
    attack("a counter that was seen", [401]) { prober throws(Failure) in
      let count = prober.iPhone.count()
      _ = try await prober.upgrade(prober.iPhone.lines(over: prober.challenge(), count: count))
      return try await prober.upgrade(prober.iPhone.lines(over: prober.challenge(), count: count))
    },
    attack("a counter that goes back", [401]) { prober throws(Failure) in
      _ = try await prober.upgrade(prober.credentials())
      return try await prober.upgrade(prober.iPhone.lines(over: prober.challenge(), count: 0))
    },
    attack("another app's name", [403]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let app = SimulatedApp(appID: "ZZZZZ99999.com.example.other", environment: .development, claims: nil)
      let assertion = try prober.iPhone.assertion(over: nonce, app: app)
      return try await prober.upgrade(prober.iPhone.lines(assertion, nonce: nonce))
    },
    attack("a signature of Android's form by an App Attest key", [400, 401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let proof: [UInt8]
      do throws(CryptographyError) {
        proof = try AndroidProofMint.proof(by: prober.iPhone.key, nonce: Hex.decode(nonce) ?? [])
      } catch {
        throw Failure(cryptography: error)
      }
      return try await prober.upgrade(prober.iPhone.lines(proof, nonce: nonce))
    },
  ]

  private static func attack(
    _ name: String, _ expected: [Int], run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) -> Attack { Attack(.credentials, name, expected, needsDevice: true, run: run) }

  private static func tampered(
    _ name: String, _ expected: [Int], _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Attack {
    attack("a proof with \(name)", expected) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let proof = change(try prober.device.proof(over: nonce))
      return try await prober.upgrade(prober.device.lines(proof, nonce: nonce))
    }
  }
}

extension Prober {
  /// A device with App Attest that is not registered. Its counter is ahead of that of any other device.
  func unregisteredDevice() throws(Failure) -> AppAttestProbeDevice {
    do throws(CryptographyError) {
      return try AppAttestProbeDevice(app: app, countingFrom: 1000)
    } catch {
      throw Failure(cryptography: error)
    }
  }

  /// An Android device that is not registered.
  func unregisteredAndroid() throws(Failure) -> AndroidProbeDevice {
    let honest = try android
    do throws(CryptographyError) {
      return try AndroidProbeDevice(authority: honest.authority, profile: honest.profile)
    } catch {
      throw Failure(cryptography: error)
    }
  }

  /// A device of the platform that is not registered.
  func stranger() throws(Failure) -> any ProbeDevice {
    switch platform {
    case .ios: try unregisteredDevice()
    case .android: try unregisteredAndroid()
    }
  }
}
