public import AndroidKeyAttestation
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

  public static func key(category: ValidationCategory? = .testFlight, version: String? = "42") -> DeviceKey {
    let publicKey = SecureRandom.bytes(65)
    return DeviceKey(
      AttestedKey(
        keyID: KeyID(ofPublicKey: publicKey), publicKey: publicKey,
        appID: unwrap(AppID("AAABBBCCC1.com.example.app")), environment: .production, validationCategory: category,
        bundleVersion: version))
  }

  public static func key(
    of app: String, in environment: AttestEnvironment = .production
  ) -> DeviceKey {
    let publicKey = SecureRandom.bytes(65)
    return DeviceKey(
      AttestedKey(
        keyID: KeyID(ofPublicKey: publicKey), publicKey: publicKey, appID: unwrap(AppID(app)),
        environment: environment))
  }

  /// The key of an Android device.
  ///
  /// - Parameter serial: The serial number of the attestation key's certificate.
  public static func androidKey(
    package: String = "com.example.app", patchLevel: PatchLevel? = PatchLevel(year: 2026, month: 5),
    provisioning: KeyProvisioning = .remote, serial: [UInt8] = SecureRandom.bytes(16)
  ) -> DeviceKey {
    DeviceKey(
      AttestedAndroidKey(
        publicKey: SecureRandom.bytes(65), package: package,
        signers: [SecureRandom.bytes(32), SecureRandom.bytes(32)], securityLevel: .strongBox, bootState: .selfSigned,
        bootKey: SecureRandom.bytes(32), patchLevel: patchLevel, provisioning: provisioning,
        serialNumbers: [[1], serial, SecureRandom.bytes(16), SecureRandom.bytes(16)]),
      environment: .production)
  }

  /// The key of an Android device with the attestation key of a factory.
  public static func factoryKey(serial: [UInt8] = SecureRandom.bytes(16)) -> DeviceKey {
    androidKey(provisioning: .factory, serial: serial)
  }

  public static func registration(
    of key: DeviceKey = key(), over nonce: Nonce = nonce(), attestation: [UInt8] = SecureRandom.bytes(8),
    at instant: Timestamp = now
  ) -> Registration {
    Registration(
      key: key, receipt: key.platform == .ios ? SecureRandom.bytes(4000) : [],
      request: RegistrationRequest(nonce: nonce, attestationDigest: AttestationDigest(of: attestation)),
      registeredAt: instant)
  }

  /// The next use of a key of any platform.
  public static func nextUse(
    of key: DeviceKey, _ counter: UInt32, over nonce: Nonce = nonce(), window: Int = 0
  ) -> KeyUse {
    key.platform == .ios ? use(of: key, counter, over: nonce, window: window) : use(of: key, over: nonce)
  }

  /// The use of a key without a counter.
  public static func use(
    of key: DeviceKey, over nonce: Nonce = nonce(), at instant: Timestamp = now
  ) -> KeyUse {
    KeyUse(keyID: key.keyID, counter: nil, nonce: nonce, window: .none, at: instant)
  }

  public static func use(
    of key: DeviceKey, _ counter: UInt32, over nonce: Nonce = nonce(), window: Int = 0, at instant: Timestamp = now
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
  static func registeredKey(
    in store: Store, _ key: DeviceKey = Fixture.key()
  ) async throws -> DeviceKey {
    let registration = Fixture.registration(of: key)
    _ = try await store.register(registration)
    return registration.key
  }

  /// Registers `count` keys of Android devices and returns them.
  public static func registeredAndroidKeys(_ count: Int, in store: any GateStore) async throws -> [DeviceKey] {
    var keys: [DeviceKey] = []
    for _ in 0..<count { keys.append(try await registeredKey(in: store, Fixture.androidKey())) }
    return keys
  }

  /// Registers `count` keys whose receipts are due, and returns their ids in the order in which they are due.
  ///
  /// - Parameter isExchanged: Whether their receipts were exchanged before.
  public static func dueKeys(_ count: Int, isExchanged: Bool, in store: any GateStore) async throws -> [KeyID] {
    var ids: [KeyID] = []
    for number in 0..<count {
      let registration = Fixture.registration(at: Fixture.now.advanced(by: .seconds(-number)))
      _ = try await store.register(registration)
      ids.append(registration.key.keyID)
    }
    guard isExchanged else { return ids }
    for (number, due) in try await dueReceipts(limit: count, in: store).enumerated() {
      let next = Fixture.now.advanced(by: .seconds(number - count))
      _ = try await store.settle(due, as: ReceiptSettlement(next: next))
    }
    return ids
  }

  /// Returns the receipts of the usual app that are due.
  public static func dueReceipts(limit: Int, in store: any GateStore) async throws -> [DueReceipt] {
    try await store.dueReceipts(
      of: AppID("AAABBBCCC1.com.example.app").map { [$0] } ?? [], at: Fixture.now, limit: limit)
  }

  /// Returns the ids on all pages of the keys of Android, and the keys that cannot be read.
  public static func readableKeys(
    in store: any GateStore, limit: Int
  ) async throws -> (read: [KeyID], unreadable: [UnreadableKey]) {
    var (read, unreadable): ([KeyID], [UnreadableKey]) = ([], [])
    var cursor: KeyID?
    repeat {
      let page = try await store.keys(KeySelection(platform: .android), after: cursor, limit: limit)
      read += page.records.map(\.key.keyID)
      unreadable += page.unreadable
      cursor = page.next
    } while cursor != nil
    return (read, unreadable)
  }

  /// Returns `ids` in the order of pages.
  public static func sorted(_ ids: [KeyID]) -> [KeyID] {
    ids.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
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
