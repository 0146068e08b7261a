internal import CBOR
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// The public key of a credential: of one of the three requested algorithms, and well-formed.
public struct CredentialPublicKey: Sendable, Hashable {
  /// The COSE numbers of algorithms, in the order of preference.
  public enum Algorithm: Int, Sendable, Hashable, CaseIterable {
    /// ECDSA on P-256 with SHA-256. The first, since Firefox 115 to 117 write keys of Ed25519 malformed.
    case es256 = -7
    /// Ed25519 (RFC 8152, as WebAuthn uses it).
    case edDSA = -8
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8812), 2048 to 4096 bits.
    case rs256 = -257
  }

  private enum Material: Sendable, Hashable {
    /// X9.63: 0x04, x and y.
    case point([UInt8])
    /// RFC 8032: 32 bytes.
    case edwards([UInt8])
    case modulus([UInt8], exponent: [UInt8])
  }

  /// The COSE key (RFC 9052, section 7) as the authenticator wrote it.
  public let encoded: [UInt8]
  private let material: Material

  public var algorithm: Algorithm {
    switch material {
    case .point: .es256
    case .edwards: .edDSA
    case .modulus: .rs256
    }
  }

  /// Parses a COSE key with exactly the parameters of its kind (Web Authentication Level 3, section 6.5.1).
  ///
  /// - Throws: `.algorithm` for a key of another algorithm; `.publicKey` for a malformed one: a compressed point, a
  ///   point that is not on the curve, numbers with leading zeros, or an RSA key below 2048 or above 4096 bits.
  public init(cose bytes: [UInt8]) throws(WebAuthnRejection) {
    guard case .map(let map)? = try? CBORValue(decoding: bytes) else { throw .publicKey }
    let parameters = COSEParameters(map: map)
    guard let number = parameters.integer(3) else { throw .publicKey }
    guard let algorithm = Algorithm(rawValue: number) else { throw .algorithm }
    encoded = bytes
    material =
      switch algorithm {
      case .es256: try Self.point(parameters)
      case .edDSA: try Self.edwards(parameters)
      case .rs256: try Self.modulus(parameters)
      }
  }

  private static func point(_ parameters: COSEParameters) throws(WebAuthnRejection) -> Material {
    guard parameters.count == 5, parameters.integer(1) == 2, parameters.integer(-1) == 1,
      let x = parameters.bytes(-2), x.count == 32, let y = parameters.bytes(-3), y.count == 32
    else { throw .publicKey }
    let point = [0x04] + x + y
    guard (try? P256.Signing.PublicKey(x963Representation: point)) != nil else { throw .publicKey }
    return .point(point)
  }

  private static func edwards(_ parameters: COSEParameters) throws(WebAuthnRejection) -> Material {
    guard parameters.count == 4, parameters.integer(1) == 1, parameters.integer(-1) == 6,
      let x = parameters.bytes(-2), x.count == 32,
      (try? Curve25519.Signing.PublicKey(rawRepresentation: x)) != nil
    else { throw .publicKey }
    return .edwards(x)
  }

  /// Larger keys would let a client choose how long a verification takes.
  private static let modulusBits = 2048...4096

  private static func modulus(_ parameters: COSEParameters) throws(WebAuthnRejection) -> Material {
    guard parameters.count == 4, parameters.integer(1) == 3, let n = parameters.bytes(-1),
      let e = parameters.bytes(-2), let first = n.first, first != 0, e.first ?? 0 != 0, e.count <= 4,
      modulusBits.contains(n.count * 8 - first.leadingZeroBitCount), (e.last ?? 0) & 1 == 1, e != [1],
      (try? _RSA.Signing.PublicKey(n: n, e: e)) != nil
    else { throw .publicKey }
    return .modulus(n, exponent: e)
  }

  /// Whether `signature` was made over `message` by this key's other half, in the form that section 6.5.5 wants: DER
  /// for ES256, 64 bytes for EdDSA, as long as the modulus for RS256.
  public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    switch material {
    case .point(let point):
      guard let key = try? P256.Signing.PublicKey(x963Representation: point),
        let signature = P256.Signing.ECDSASignature(strictDER: signature)
      else { return false }
      return key.isValidSignature(signature, for: message)
    case .edwards(let x):
      guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x) else { return false }
      return key.isValidSignature(signature, for: message)
    case .modulus(let n, let e):
      guard let key = try? _RSA.Signing.PublicKey(n: n, e: e) else { return false }
      return key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: signature), for: message, padding: .insecurePKCS1v1_5)
    }
  }
}

/// A COSE key's parameters by their numbers.
private struct COSEParameters {
  let map: CBORMap

  var count: Int { map.count }

  private func value(_ label: Int64) -> CBORValue? {
    let key = CBORValue(integerLiteral: label)
    return map.pairs.first { $0.key == key }?.value
  }

  func integer(_ label: Int64) -> Int? {
    switch value(label) {
    case .unsigned(let number)?: Int(exactly: number)
    case .negative(let number)?: Int(exactly: number).map { -1 - $0 }
    default: nil
    }
  }

  func bytes(_ label: Int64) -> [UInt8]? { if case .bytes(let bytes)? = value(label) { bytes } else { nil } }
}
