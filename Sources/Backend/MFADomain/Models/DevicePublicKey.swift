internal import ByteCoding
internal import Crypto
internal import Foundation

/// The public key of a device's P-256 key pair: a point on the curve, not at infinity.
///
/// Clients send the 65-byte point of X9.63 that `SecKeyCopyExternalRepresentation` returns, or the 91-byte
/// SubjectPublicKeyInfo of RFC 5480. Both result in the same key. Other forms are refused, and the usual ones named.
public struct DevicePublicKey: Sendable, Hashable {
  /// 0x04, X and Y: 65 bytes.
  public let point: [UInt8]

  /// Parses a client's key in any form of base64 that `Base64.decode(anyForm:)` accepts.
  ///
  /// - Throws: What was sent in place of a key, with its form or size, and what is expected.
  public init(base64 text: String) throws(InvalidValue) {
    guard let bytes = Base64.decode(anyForm: text) else { throw Self.invalid(UnreadableKey(text: text)) }
    try self.init(bytes: bytes)
  }

  /// - Throws: As `init(base64:)`.
  public init(bytes: [UInt8]) throws(InvalidValue) {
    let isInfo = bytes.count == 91 && bytes.starts(with: Self.infoPrefix)
    point = isInfo ? Array(bytes.dropFirst(Self.infoPrefix.count)) : bytes
    guard point.count == 65, (try? P256.Signing.PublicKey(x963Representation: point)) != nil else {
      throw Self.invalid(UnreadableKey(bytes: bytes))
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

  private static func invalid(_ sent: UnreadableKey) -> InvalidValue {
    InvalidValue(
      field: "publicKey",
      rule: "is a P-256 key in base64: 65 bytes (X9.63) or 91 bytes (SubjectPublicKeyInfo); \(sent.text)")
  }

  // SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING } up to the point.
  private static let infoPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
    0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ]

  /// A key whose private key was discarded. A verification with it takes as long as with a device's key.
  public static let decoy = DevicePublicKey(unchecked: Array(P256.Signing.PrivateKey().publicKey.x963Representation))

  private init(unchecked point: [UInt8]) { self.point = point }
}

/// What a client sent in place of a key.
private enum UnreadableKey {
  case pem
  case json
  case hex
  /// 0x02 or 0x03 and X, alone or in a SubjectPublicKeyInfo.
  case compressedPoint
  /// X and Y without 0x04.
  case bareCoordinates
  /// The right size, but no point of the curve.
  case noPoint
  case notBase64
  case size(Int)

  /// Recognizes a text that is not base64.
  init(text: String) {
    let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    let beginning = text.utf8.drop(while: isSpace)
    self =
      beginning.starts(with: "-----BEGIN".utf8)
      ? .pem
      : beginning.first == UInt8(ascii: "{") ? .json : Hex.decode(text) != nil ? .hex : .notBase64
  }

  init(bytes: [UInt8]) {
    let point = bytes.count == 59 && bytes.first == 0x30 ? Array(bytes.suffix(33)) : bytes
    self =
      switch (point.count, point.first) {
      case (33, 0x02), (33, 0x03): .compressedPoint
      case (64, _): .bareCoordinates
      // Digits of hex are digits of base64, too: 65 bytes are 130 digits, and these are 97 bytes.
      case (97, _), (136, _): Self.isHex(bytes) ? .hex : .size(bytes.count)
      case (65, _), (91, _): .noPoint
      case (let count, _): .size(count)
      }
  }

  private static func isHex(_ bytes: [UInt8]) -> Bool { Hex.decode(Base64URL.encode(bytes)) != nil }

  var text: String {
    switch self {
    case .pem: "this is PEM: send the base64 between its first and last line"
    case .json: "this is a JSON object, such as a JWK: send the point, 04, x and y"
    case .hex: "this is hex: send the bytes in base64"
    case .compressedPoint: "this is a compressed point: send the uncompressed one, 04, x and y"
    case .bareCoordinates: "these are 64 bytes: send 04 before x and y"
    case .noPoint: "these bytes are no uncompressed point of this curve, which is 04, x and y"
    case .notBase64: "this is not base64"
    case .size(let count): "these are \(count) bytes"
    }
  }
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
