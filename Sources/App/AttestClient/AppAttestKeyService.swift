/// Keys that never leave their device and can prove where they live: `DCAppAttestService`, or something that acts as it
/// does.
///
/// A key is attested once in its life and makes assertions afterwards. A key identifier is opaque to the caller.
public protocol AppAttestKeyService: Sendable {
  /// Whether this device has such keys at all.
  var isSupported: Bool { get }

  /// Makes a key pair and returns its identifier: the base64 of the SHA-256 of the public key.
  func generateKey() async throws(KeyServiceError) -> String

  /// Attests a key that was not attested before, bound to `clientDataHash` (32 bytes), and returns the attestation
  /// object.
  ///
  /// Succeeds once per key. After `.serverUnavailable` the same key may be tried again later; after any other error
  /// the key is useless.
  func attestKey(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8]

  /// An assertion of an attested key over `clientDataHash` (32 bytes), with a counter higher than in all before.
  func generateAssertion(_ keyID: String, clientDataHash: [UInt8]) async throws(KeyServiceError) -> [UInt8]
}

/// The errors of a key service. The cases are those of `DCError`.
public enum KeyServiceError: Error, Sendable, Hashable {
  /// The key is unknown to the device, was attested before, or is not attested yet.
  case invalidKey
  /// A malformed key identifier or hash.
  case invalidInput
  /// The device has no App Attest: a simulator, an app extension, an old system.
  case featureUnsupported
  /// The vendor's servers could not be reached. The key remains good.
  case serverUnavailable
  /// The system failed; the text is for a developer.
  case systemFailure(String)
}

extension KeyServiceError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .invalidKey: "the device does not know this key, or it cannot be used so"
    case .invalidInput: "the key service refused its input"
    case .featureUnsupported: "this device does not support App Attest"
    case .serverUnavailable: "the attestation service cannot be reached"
    case .systemFailure(let reason): "the key service failed: \(reason)"
    }
  }
}
