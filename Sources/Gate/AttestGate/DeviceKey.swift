public import AndroidKeyAttestation
public import AppAttest
internal import Cryptography

/// The kind of device that a key lives in.
public enum Platform: String, Codable, Sendable, Hashable, CaseIterable { case ios, android }

/// The name of an app: the app id of Apple, or the package of Android.
public struct AppName: Sendable, Hashable {
  public let platform: Platform
  /// `TEAMID.bundle.id`, or the name of a package. One text can be a name on both platforms.
  public let text: String

  public init(_ appID: AppID) { (platform, text) = (.ios, appID.text) }
  public init(package: String) { (platform, text) = (.android, package) }
}

/// The key of a genuine device, and what its attestation proved.
public struct DeviceKey: Sendable, Hashable {
  /// What was proved, in the form of the key's platform.
  public enum Attestation: Sendable, Hashable {
    case appAttest(AttestedKey)
    case android(AttestedAndroidKey)
  }

  /// SHA-256 of the public key.
  public let keyID: KeyID
  /// X9.62, uncompressed, 65 bytes.
  public let publicKey: [UInt8]
  /// The one app that the key belongs to.
  public let app: AppName
  /// The environment of App Attest; on Android `development` for keys that simulated roots attested.
  public let environment: AttestEnvironment
  public let attestation: Attestation

  public var platform: Platform { app.platform }

  public init(_ key: AttestedKey) {
    keyID = key.keyID
    publicKey = key.publicKey
    app = AppName(key.appID)
    environment = key.environment
    attestation = .appAttest(key)
  }

  /// - Parameter keyID: the name of the key, if it is known; otherwise it is computed.
  public init(_ key: AttestedAndroidKey, keyID: KeyID? = nil, environment: AttestEnvironment) {
    self.keyID = keyID ?? KeyID(ofPublicKey: key.publicKey)
    publicKey = key.publicKey
    app = AppName(package: key.package)
    self.environment = environment
    attestation = .android(key)
  }

  /// The source from which the app was installed; `nil` if the attestation does not say.
  public var validationCategory: ValidationCategory? {
    if case .appAttest(let key) = attestation { key.validationCategory } else { nil }
  }

  /// The app's `CFBundleVersion`; `nil` if the attestation does not say.
  public var bundleVersion: String? {
    if case .appAttest(let key) = attestation { key.bundleVersion } else { nil }
  }

  /// The public key made ready for verification. Worth keeping: making it costs more than using it.
  func makePublicKey() throws(CryptographyError) -> P256PublicKey { try P256PublicKey(x963: publicKey) }
}
