internal import ByteCoding

/// The keys of a device as a session uses them, whatever its platform. App Attest is one; simulated devices have another.
package protocol DeviceKeyService: Sendable {
  /// Whether this device has such keys at all.
  var isSupported: Bool { get }

  /// Makes a key pair and returns its identifier: the base64 of the SHA-256 of the public key.
  func generateKey() async throws(KeyServiceError) -> String

  /// Attests a key that was not attested before, and returns the body of `POST /attest/register`. The errors are as in
  /// `AppAttestKeyService.attestKey`.
  func registration(of keyID: String, over challenge: Challenge) async throws(KeyServiceError) -> [UInt8]

  /// The proof of an attested key for one request, the content of `X-App-Assert-Data`.
  func proof(by keyID: String, over challenge: Challenge) async throws(KeyServiceError) -> [UInt8]
}

/// The keys of App Attest.
package struct AppAttestKeys: DeviceKeyService {
  private let keys: any AppAttestKeyService

  package init(_ keys: any AppAttestKeyService) { self.keys = keys }

  package var isSupported: Bool { keys.isSupported }

  package func generateKey() async throws(KeyServiceError) -> String { try await keys.generateKey() }

  package func registration(
    of keyID: String, over challenge: Challenge
  ) async throws(KeyServiceError) -> [UInt8] {
    Self.body(
      keyID: keyID, attestation: try await keys.attestKey(keyID, clientDataHash: challenge.clientDataHash),
      challenge: challenge)
  }

  /// The body of `POST /attest/register` for an attestation object.
  package static func body(keyID: String, attestation: [UInt8], challenge: Challenge) -> [UInt8] {
    // All three are base64 or hex and need no escapes; a key service that answers otherwise gets its text escaped.
    Array(
      #"{"keyId":\#(JSONText.quote(keyID)),"attestation":"\#(Base64.encode(attestation))","nonce":"\#(challenge.nonce)"}"#
        .utf8)
  }

  package func proof(by keyID: String, over challenge: Challenge) async throws(KeyServiceError) -> [UInt8] {
    try await keys.generateAssertion(keyID, clientDataHash: challenge.clientDataHash)
  }
}
