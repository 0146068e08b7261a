internal import CommandSupport
internal import ByteCoding
internal import Cryptography
internal import SimulatedDevice

extension Attack {
  /// Attempts to be admitted without a proof, or with one that is no longer valid.
  static let credentials: [Attack] = [
    Attack(.credentials, "no credentials", [401]) { prober throws(Failure) in try await prober.upgrade([]) },
    Attack(.credentials, "the gate's own words instead", [401]) { prober throws(Failure) in
      try await prober.upgrade([
        "X-Attest-Method: app-attest", "X-Attest-Key-Id: mallory", "X-Forwarded-For: 127.0.0.1",
      ])
    },
    Attack(.credentials, "a client certificate in a header", [401]) { prober throws(Failure) in
      try await prober.upgrade(["X-SSL-Client-Verify: SUCCESS", "Client-Cert: :AAAA:", "X-Client-DN: CN=Debug"])
    },
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
    attack("a counter that was seen", [401]) { prober throws(Failure) in
      let count = prober.device.count()
      _ = try await prober.upgrade(prober.device.lines(over: prober.challenge(), count: count))
      return try await prober.upgrade(prober.device.lines(over: prober.challenge(), count: count))
    },
    attack("a counter that goes back", [401]) { prober throws(Failure) in
      _ = try await prober.upgrade(prober.credentials())
      return try await prober.upgrade(prober.device.lines(over: prober.challenge(), count: 0))
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
      let assertion = try prober.device.assertion(over: try await prober.challenge())
      return try await prober.upgrade(
        ProbeDevice.lines(keyID: prober.device.keyID, assertion: assertion, nonce: prober.challenge()))
    },
    attack("a key that is not registered", [401]) { prober throws(Failure) in
      try await prober.upgrade(prober.unregisteredDevice().lines(over: prober.challenge()))
    },
    attack("another's key id", [401]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let assertion = try prober.unregisteredDevice().assertion(over: nonce, count: 1000)
      return try await prober.upgrade(
        ProbeDevice.lines(keyID: prober.device.keyID, assertion: assertion, nonce: nonce))
    },
    attack("another app's name", [403]) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let app = SimulatedApp(appID: "ZZZZZ99999.com.example.other", environment: .development, claims: nil)
      return try await prober.upgrade(
        ProbeDevice.lines(
          keyID: prober.device.keyID, assertion: prober.device.assertion(over: nonce, app: app), nonce: nonce))
    },
    tampered("a changed byte in the middle", [400, 401, 403]) { bytes in
      bytes.enumerated().map { $0.offset == bytes.count / 2 ? $0.element ^ 1 : $0.element }
    },
    tampered("a changed last byte", [400, 401, 403]) { bytes in bytes.dropLast() + (bytes.last.map { [$0 ^ 1] } ?? [])
    },
    tampered("a missing last byte", [400]) { $0.dropLast() },
    tampered("a byte behind it", [400]) { $0 + [0] },
    tampered("nothing in it", [400]) { _ in [] },
    attack("half of the credentials", [400]) { prober throws(Failure) in
      try await prober.upgrade(Array(prober.credentials().dropLast()))
    },
    attack("credentials given twice", [400]) { prober throws(Failure) in
      let lines = try await prober.credentials()
      return try await prober.upgrade(lines + lines)
    },
  ]

  private static func attack(
    _ name: String, _ expected: [Int], run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) -> Attack { Attack(.credentials, name, expected, needsDevice: true, run: run) }

  private static func tampered(
    _ name: String, _ expected: [Int], _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Attack {
    attack("an assertion with \(name)", expected) { prober throws(Failure) in
      let nonce = try await prober.challenge()
      let assertion = change(try prober.device.assertion(over: nonce))
      return try await prober.upgrade(
        ProbeDevice.lines(keyID: prober.device.keyID, assertion: assertion, nonce: nonce))
    }
  }
}

extension Prober {
  /// A device that is not registered.
  func unregisteredDevice() throws(Failure) -> ProbeDevice {
    do throws(CryptographyError) { return try ProbeDevice(app: app) } catch { throw Failure(cryptography: error) }
  }
}
