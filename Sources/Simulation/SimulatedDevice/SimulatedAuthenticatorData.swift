internal import CBOR
internal import Cryptography

/// Authenticator data as a device makes it (WebAuthn section 6.1), before it is signed.
public struct SimulatedAuthenticatorData: Sendable, Hashable {
  /// The additional part of an attestation: the key and its identifier.
  public struct Credential: Sendable, Hashable {
    /// The identifier of the environment, 16 bytes.
    public var aaguid: [UInt8]
    /// The key identifier, 32 bytes.
    public var credentialID: [UInt8]
    /// The COSE key, encoded; 77 bytes for a key on P-256.
    public var publicKey: [UInt8]
  }

  /// SHA-256 of the app ID.
  public var rpIDHash: [UInt8]
  /// 0x40: credential data is included (devices also set it in assertions, which have none). 0x80: extensions are
  /// included.
  public var flags: UInt8
  /// The counter of the key.
  public var signCount: UInt32
  /// The attested key; absent in assertions.
  public var credential: Credential?
  /// The encoded extension map; empty for none.
  public var extensions: [UInt8]

  /// Creates the authenticator data of a genuine device for `app`.
  init(app: SimulatedApp, signCount: UInt32, credential: Credential?) {
    rpIDHash = SHA256.hash(Array(app.appID.utf8))
    flags = app.claims == nil ? 0x40 : 0xC0
    self.signCount = signCount
    self.credential = credential
    extensions = app.claims?.encoded ?? []
  }

  /// The bytes of the authenticator data.
  public var encoded: [UInt8] {
    var bytes = rpIDHash + [flags] + Self.bigEndian(signCount, count: 4)
    if let credential {
      bytes += credential.aaguid
      bytes += Self.bigEndian(UInt32(credential.credentialID.count), count: 2)
      bytes += credential.credentialID
      bytes += credential.publicKey
    }
    return bytes + extensions
  }

  private static func bigEndian(_ number: UInt32, count: UInt32) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
  }
}

extension SimulatedAuthenticatorData.Credential {
  /// The credential of the key with the given point (65 bytes).
  init(x963: [UInt8], environment: SimulatedEnvironment) {
    aaguid = environment.aaguid
    credentialID = SHA256.hash(x963)
    publicKey = Self.coseKey(x963: x963)
  }

  /// EC2, ES256, P-256, x, y (RFC 9053 section 7.1.1).
  public static func coseKey(x963: [UInt8]) -> [UInt8] {
    let coordinates = x963.dropFirst()
    let map: CBORMap = [
      1: 2, 3: -7, -1: 1, -2: .bytes(Array(coordinates.prefix(32))), -3: .bytes(Array(coordinates.dropFirst(32))),
    ]
    return CBORValue.map(map).encoded
  }
}

extension AppClaims {
  /// The map, as devices write it: 62 bytes with a version of one character.
  var encoded: [UInt8] {
    let category = (0..<4).map { UInt8(truncatingIfNeeded: validationCategory >> (8 * UInt32($0))) }
    let map: CBORMap = [
      "apple_bundle_version_01": .text(bundleVersion), "apple_validation_category_01": .bytes(category),
    ]
    return CBORValue.map(map).encoded
  }
}
