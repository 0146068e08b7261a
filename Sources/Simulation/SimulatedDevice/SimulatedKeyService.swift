public import AttestClient
public import ByteCoding
internal import Cryptography

/// The keys of a simulated device: acts as `DCAppAttestService` does, one attestation a key included.
public actor SimulatedKeyService: AppAttestKeyService {
  /// Always `true`: a simulated device supports App Attest.
  public nonisolated let isSupported = true
  private var attestations: AttestationMint
  private let assertions: AssertionMint
  private let keys: any SimulatedKeyStore
  private let now: @Sendable () -> Timestamp

  /// A device that runs `app`, with keys in `keys`, vouched for by `authority`.
  ///
  /// - Parameter device: The name of the device in the receipt of the next key; `nil` for a new device.
  public init(
    authority: TestAuthority, app: SimulatedApp, keys: any SimulatedKeyStore, device: SimulatedDeviceName? = nil,
    now: @escaping @Sendable () -> Timestamp = { .now() }
  ) {
    var attestations = AttestationMint(authority: authority, app: app)
    attestations.device = device ?? SimulatedDeviceName()
    self.attestations = attestations
    assertions = AssertionMint(app: app)
    self.keys = keys
    self.now = now
  }

  /// Makes a key and returns its identifier in base64.
  public func generateKey() throws(KeyServiceError) -> String {
    try keys.makeKey()
  }

  /// Returns an attestation of the key. Each key can be attested once.
  public func attestKey(_ keyID: String, clientDataHash: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    var key = try keys.existingKey(keyID)
    guard !key.isAttested else { throw .invalidKey }
    let object = try key.attempt { key throws(CryptographyError) in
      try attestations.attestation(of: key, clientDataHash: clientDataHash, at: now())
    }
    key.isAttested = true
    try keys.keep(key)
    attestations.device?.attestedKeys += 1
    return object
  }

  /// The counter is on disk before the assertion is handed out: a device that stops in between leaves a gap, never a
  /// counter that is used twice.
  public func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    var key = try keys.existingKey(keyID)
    guard key.isAttested, key.signCount < .max else { throw .invalidKey }
    key.signCount += 1
    try keys.keep(key)
    let signCount = key.signCount
    return try key.attempt { key throws(CryptographyError) in
      try assertions.assertion(by: key, clientDataHash: clientDataHash, signCount: signCount)
    }
  }
}

// What the key services of both platforms do with their keys.
extension SimulatedKeyStore {
  /// Makes a key and returns its identifier.
  func makeKey() throws(KeyServiceError) -> String {
    let key: SimulatedKey
    do throws(CryptographyError) {
      let made = try P256PrivateKey()
      key = SimulatedKey(keyID: Base64.encode(SHA256.hash(made.publicKey.x963)), privateKeyPEM: try made.pkcs8PEM)
    } catch {
      throw .systemFailure("\(error)")
    }
    try keep(key)
    return key.keyID
  }

  func existingKey(_ keyID: String) throws(KeyServiceError) -> SimulatedKey {
    let found: SimulatedKey?
    do throws(KeyStoreError) { found = try key(keyID) } catch { throw .systemFailure("\(error)") }
    guard let found else { throw .invalidKey }
    return found
  }

  func keep(_ key: SimulatedKey) throws(KeyServiceError) {
    do throws(KeyStoreError) { try save(key) } catch { throw .systemFailure("\(error)") }
  }
}

extension SimulatedKey {
  /// Calls `body` with the private key.
  func attempt<Value>(
    _ body: (P256PrivateKey) throws(CryptographyError) -> Value
  ) throws(KeyServiceError) -> Value {
    do throws(CryptographyError) {
      return try body(P256PrivateKey(pkcs8PEM: privateKeyPEM))
    } catch {
      throw .systemFailure("\(error)")
    }
  }
}
