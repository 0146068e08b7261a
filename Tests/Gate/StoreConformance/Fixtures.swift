public import AppAttest
public import AttestGate
public import ByteCoding
public import Cryptography

/// Values for the invariants: well-formed but not signed.
public enum Fixture {
  public static let now = Timestamp(seconds: 1_800_000_000)

  /// Returns a new nonce that was issued at the given time.
  public static func nonce(issuedAt instant: Timestamp = now) -> Nonce {
    let time = (0..<6).map { UInt8(truncatingIfNeeded: instant.milliseconds >> (40 - 8 * $0)) }
    return unwrap(Nonce(bytes: [1] + time + SecureRandom.bytes(25)))
  }

  public static func key(category: ValidationCategory? = .testFlight, version: String? = "42") -> AttestedKey {
    let publicKey = SecureRandom.bytes(65)
    return AttestedKey(
      keyID: unwrap(KeyID(bytes: SHA256.hash(publicKey))), publicKey: publicKey,
      appID: unwrap(AppID("AAABBBCCC1.com.example.app")), environment: .production, validationCategory: category,
      bundleVersion: version)
  }

  public static func key(
    of app: String, in environment: AttestEnvironment = .production
  ) -> AttestedKey {
    let publicKey = SecureRandom.bytes(65)
    return AttestedKey(
      keyID: unwrap(KeyID(bytes: SHA256.hash(publicKey))), publicKey: publicKey,
      appID: unwrap(AppID(app)), environment: environment)
  }

  public static func registration(
    of key: AttestedKey = key(), over nonce: Nonce = nonce(), attestation: [UInt8] = SecureRandom.bytes(8),
    at instant: Timestamp = now
  ) -> Registration {
    Registration(
      key: key, receipt: SecureRandom.bytes(4000),
      request: RegistrationRequest(nonce: nonce, attestationDigest: AttestationDigest(of: attestation)),
      registeredAt: instant)
  }

  public static func use(
    of key: AttestedKey, _ counter: UInt32, over nonce: Nonce = nonce(), window: Int = 0, at instant: Timestamp = now
  ) -> KeyUse {
    KeyUse(
      keyID: key.keyID, counter: SignCount(counter), nonce: nonce, window: unwrap(CounterWindow(window)), at: instant)
  }

  private static func unwrap<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("a fixture is malformed") }
    return value
  }
}

extension StoreInvariant {
  /// Registers a new key in `store` and returns it.
  static func registeredKey(in store: Store) async throws -> AttestedKey {
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    return registration.key
  }

  /// Returns the number of each answer to `count` concurrent calls.
  public static func tally<Answer: Hashable & Sendable>(
    _ count: Int, _ call: @escaping @Sendable (Int) async throws -> Answer
  ) async throws -> [Answer: Int] {
    try await withThrowingTaskGroup(of: Answer.self) { group in
      for number in 0..<count { group.addTask { try await call(number) } }
      return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
  }
}
