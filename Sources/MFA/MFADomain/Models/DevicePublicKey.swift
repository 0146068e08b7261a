internal import ByteCoding
internal import Crypto
internal import Foundation

/// The public key of a device's P-256 key pair: a point on the curve, not at infinity.
///
/// Clients send the 65-byte point of X9.63 that `SecKeyCopyExternalRepresentation` returns, or the 91-byte
/// SubjectPublicKeyInfo of RFC 5480. Both result in the same key. Other forms are refused.
public struct DevicePublicKey: Sendable, Hashable {
  /// 0x04, X and Y: 65 bytes.
  public let point: [UInt8]

  /// Parses a client's key in base64.
  public init(base64 text: String) throws(InvalidValue) {
    guard let bytes = Base64.decode(text) else { throw Self.invalid }
    try self.init(bytes: bytes)
  }

  public init(bytes: [UInt8]) throws(InvalidValue) {
    let isInfo = bytes.count == 91 && bytes.starts(with: Self.infoPrefix)
    point = isInfo ? Array(bytes.dropFirst(Self.infoPrefix.count)) : bytes
    guard point.count == 65, (try? P256.Signing.PublicKey(x963Representation: point)) != nil else {
      throw Self.invalid
    }
  }

  /// Whether `signature` was made over `message` by this key's other half with ECDSA and SHA-256, hashed once.
  ///
  /// Phones send DER (X9.62), some libraries the 64 bytes of r and s: DER is tried when the first two bytes say so.
  public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard let key = try? P256.Signing.PublicKey(x963Representation: point) else { return false }
    return Self.readings(of: signature).contains { key.isValidSignature($0, for: message) }
  }

  private static func readings(of signature: [UInt8]) -> [P256.Signing.ECDSASignature] {
    var readings: [P256.Signing.ECDSASignature] = []
    if let reading = P256.Signing.ECDSASignature(strictDER: signature) { readings.append(reading) }
    if signature.count == 64, let reading = try? P256.Signing.ECDSASignature(rawRepresentation: signature) {
      readings.append(reading)
    }
    return readings
  }

  private static let invalid = InvalidValue(
    field: "publicKey", rule: "is a P-256 key in base64: 65 bytes (X9.63) or 91 bytes (SubjectPublicKeyInfo)")

  // SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING } up to the point.
  private static let infoPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
    0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ]

  /// A key whose private key was discarded. A verification with it takes as long as with a device's key.
  public static let decoy = DevicePublicKey(unchecked: Array(P256.Signing.PrivateKey().publicKey.x963Representation))

  private init(unchecked point: [UInt8]) { self.point = point }
}

extension P256.Signing.ECDSASignature {
  /// Parses DER (X9.62) without further bytes.
  init?(strictDER bytes: [UInt8]) {
    guard bytes.count >= 8, bytes[0] == 0x30, Int(bytes[1]) == bytes.count - 2,
      let signature = try? P256.Signing.ECDSASignature(derRepresentation: bytes)
    else { return nil }
    self = signature
  }
}
