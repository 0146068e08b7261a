public import Cryptography

/// A key of which an attestation has proven that it belongs to a genuine instance of an app.
public struct AttestedKey: Sendable, Hashable {
  /// The identifier of the key: the SHA-256 hash of the public key.
  public let keyID: KeyID
  /// X9.62, uncompressed, 65 bytes.
  public let publicKey: [UInt8]
  /// The one app that the key is bound to.
  public let appID: AppID
  /// The App Attest environment in which the key was made.
  public let environment: AttestEnvironment
  /// `nil` for devices before iOS 27.
  public let validationCategory: ValidationCategory?
  /// The app's `CFBundleVersion`; `nil` for devices before iOS 27.
  public let bundleVersion: String?

  /// Creates a key from stored values. Only stores call this, for keys that `AttestationVerifier` returned.
  public init(
    keyID: KeyID, publicKey: [UInt8], appID: AppID, environment: AttestEnvironment,
    validationCategory: ValidationCategory? = nil, bundleVersion: String? = nil
  ) {
    self.keyID = keyID
    self.publicKey = publicKey
    self.appID = appID
    self.environment = environment
    self.validationCategory = validationCategory
    self.bundleVersion = bundleVersion
  }

  /// The public key made ready for verification. Worth keeping: making it costs more than using it.
  public func makePublicKey() throws(CryptographyError) -> P256PublicKey { try P256PublicKey(x963: publicKey) }
}
