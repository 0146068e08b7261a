public import AppAttest
public import AttestGate
public import ByteCoding
public import Cryptography
public import SimulatedDevice
internal import Locking

/// A device with one key, whose attestations and assertions a test can alter.
public struct MintedDevice: Sendable {
  public let key: P256PrivateKey
  public let keyID: KeyID
  public var attestations: AttestationMint
  public var assertions: AssertionMint

  public init(app: SimulatedApp, authority: TestAuthority) throws {
    key = try P256PrivateKey()
    guard let keyID = KeyID(bytes: SHA256.hash(key.publicKey.x963)) else { throw FixtureError.unexpected }
    self.keyID = keyID
    attestations = AttestationMint(authority: authority, app: app)
    assertions = AssertionMint(app: app)
  }

  /// Returns the device's registration of its key at `instant`.
  public func registration(over nonce: Nonce, at instant: Timestamp) throws -> RegistrationClaim {
    let object = try attestations.attestation(of: key, clientDataHash: nonce.clientDataHash.bytes, at: instant)
    return RegistrationClaim(keyID: keyID.base64, attestation: Base64.encode(object), nonce: nonce.text)
  }

  /// Returns the three headers of an upgrade.
  public func headers(over nonce: Nonce, count: UInt32) throws -> [AssertionClaim.Name: String] {
    let assertion = try assertions.assertion(
      by: key, clientDataHash: nonce.clientDataHash.bytes, signCount: count)
    return [.keyID: keyID.base64, .data: Base64.encode(assertion), .nonce: nonce.text]
  }

  /// Returns these headers as a claim for the gate.
  public func claim(over nonce: Nonce, count: UInt32, certificate: VerifiedCertificate? = nil) throws -> AdmissionClaim
  {
    AdmissionClaim(headers: try headers(over: nonce, count: count), certificate: certificate)
  }
}

extension AdmissionClaim {
  /// Creates a claim with each of these headers once.
  public init(headers: [AssertionClaim.Name: String], certificate: VerifiedCertificate? = nil) {
    self.init(
      assertion: AssertionClaim { headers[$0].map(AssertionClaim.Part.once) ?? .absent }, certificate: certificate)
  }
}

/// Counts the signatures of a device.
public final class SignCounter: Sendable {
  private let count = LockedValue(UInt32(0))

  public init() {}

  public func next() -> UInt32 {
    count.withLock { count in
      count += 1
      return count
    }
  }
}

public enum FixtureError: Error { case unexpected }
