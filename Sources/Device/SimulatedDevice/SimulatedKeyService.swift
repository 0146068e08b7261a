public import AttestClient
public import ByteCoding
internal import Cryptography

/// The keys of a simulated device: acts as `DCAppAttestService` does, one attestation a key included.
public actor SimulatedKeyService: AppAttestKeyService {
  /// Always `true`: a simulated device supports App Attest.
  public nonisolated let isSupported = true
  private let attestations: AttestationMint
  private let assertions: AssertionMint
  private let keys: any SimulatedKeyStore
  private let now: @Sendable () -> Timestamp

  /// A device that runs `app`, with keys in `keys`, vouched for by `authority`.
  public init(
    authority: TestAuthority, app: SimulatedApp, keys: any SimulatedKeyStore,
    now: @escaping @Sendable () -> Timestamp = { .now() }
  ) {
    attestations = AttestationMint(authority: authority, app: app)
    assertions = AssertionMint(app: app)
    self.keys = keys
    self.now = now
  }

  /// Makes a key and returns its identifier in base64.
  public func generateKey() throws(KeyServiceError) -> String {
    let key = try attempt { () throws(CryptographyError) in try P256PrivateKey() }
    let keyID = Base64.encode(SHA256.hash(key.publicKey.x963))
    let pem = try attempt { () throws(CryptographyError) in try key.pkcs8PEM }
    try save(SimulatedKey(keyID: keyID, privateKeyPEM: pem))
    return keyID
  }

  /// Returns an attestation of the key. Each key can be attested once.
  public func attestKey(_ keyID: String, clientDataHash: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    var key = try load(keyID)
    guard !key.isAttested else { throw .invalidKey }
    let object = try attempt { () throws(CryptographyError) in
      try attestations.attestation(
        of: P256PrivateKey(pkcs8PEM: key.privateKeyPEM), clientDataHash: clientDataHash, at: now())
    }
    key.isAttested = true
    try save(key)
    return object
  }

  /// The counter is on disk before the assertion is handed out: a device that stops in between leaves a gap, never a
  /// counter that is used twice.
  public func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    var key = try load(keyID)
    guard key.isAttested, key.signCount < .max else { throw .invalidKey }
    key.signCount += 1
    try save(key)
    return try attempt { () throws(CryptographyError) in
      try assertions.assertion(
        by: P256PrivateKey(pkcs8PEM: key.privateKeyPEM), clientDataHash: clientDataHash, signCount: key.signCount)
    }
  }

  private func load(_ keyID: String) throws(KeyServiceError) -> SimulatedKey {
    let key: SimulatedKey?
    do throws(KeyStoreError) { key = try keys.key(keyID) } catch { throw .systemFailure("\(error)") }
    guard let key else { throw .invalidKey }
    return key
  }

  private func save(_ key: SimulatedKey) throws(KeyServiceError) {
    do throws(KeyStoreError) { try keys.save(key) } catch { throw .systemFailure("\(error)") }
  }

  private func attempt<Value>(_ body: () throws(CryptographyError) -> Value) throws(KeyServiceError) -> Value {
    do throws(CryptographyError) { return try body() } catch { throw .systemFailure("\(error)") }
  }
}
