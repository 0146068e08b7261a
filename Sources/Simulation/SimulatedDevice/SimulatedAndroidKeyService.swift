public import AttestClient
public import ByteCoding
internal import Cryptography

/// The keys of a simulated Android device: Android's Keystore, with the attestation of a key that it generates.
public actor SimulatedAndroidKeyService {
  private let mint: AndroidAttestationMint
  private let keys: any SimulatedKeyStore
  private let now: @Sendable () -> Timestamp

  /// A phone with `profile`, with keys in `keys`, vouched for by `authority`.
  ///
  /// - Parameter device: See `AndroidAttestationMint`; `nil` for a new phone.
  public init(
    authority: AndroidAuthority, profile: AndroidProfile, keys: any SimulatedKeyStore,
    device: SimulatedDeviceName? = nil, now: @escaping @Sendable () -> Timestamp = { .now() }
  ) {
    mint = AndroidAttestationMint(
      authority: authority, profile: profile, device: device ?? SimulatedDeviceName())
    self.keys = keys
    self.now = now
  }

  /// Makes a key and returns its identifier: base64 of the SHA-256 of the public key.
  public func generateKey() throws(KeyServiceError) -> String {
    try keys.makeKey()
  }

  /// Returns the chain of the key for `challenge`, leaf first. Each key is attested once: a real device does it when it
  /// generates the key.
  public func chain(of keyID: String, challenge: [UInt8]) throws(KeyServiceError) -> [[UInt8]] {
    var key = try keys.existingKey(keyID)
    guard !key.isAttested else { throw .invalidKey }
    let chain = try key.attempt { key throws(CryptographyError) in
      try mint.chain(of: key, challenge: challenge, at: now())
    }
    key.isAttested = true
    key.chain = chain.map(Base64.encode)
    try keys.keep(key)
    return chain
  }

  /// The proof of an attested key over `nonce`. There is no counter.
  public func proof(by keyID: String, nonce: [UInt8]) throws(KeyServiceError) -> [UInt8] {
    let key = try keys.existingKey(keyID)
    guard key.isAttested else { throw .invalidKey }
    return try key.attempt { key throws(CryptographyError) in try AndroidProofMint.proof(by: key, nonce: nonce) }
  }
}

extension SimulatedAndroidKeyService: DeviceKeyService {
  package nonisolated var isSupported: Bool { true }

  package func registration(
    of keyID: String, over challenge: Challenge
  ) throws(KeyServiceError) -> [UInt8] {
    Self.body(chain: try chain(of: keyID, challenge: challenge.bytes), challenge: challenge)
  }

  /// The body of `POST /attest/register` for a chain, leaf first.
  package static func body(chain: [[UInt8]], challenge: Challenge) -> [UInt8] {
    // Base64 and hex need no escapes.
    let texts = chain.map { "\"\(Base64.encode($0))\"" }.joined(separator: ",")
    return Array(#"{"platform":"android","chain":[\#(texts)],"nonce":"\#(challenge.nonce)"}"#.utf8)
  }

  package func proof(by keyID: String, over challenge: Challenge) throws(KeyServiceError) -> [UInt8] {
    try proof(by: keyID, nonce: challenge.bytes)
  }
}
