public import CBOR

/// The part of authenticator data that attestations and assertions have in common (WebAuthn section 6.1): 37 bytes.
struct AuthenticatorDataHead: Sendable, Hashable {
  static let size = 37

  /// SHA-256 of the app ID, 32 bytes.
  let rpIDHash: [UInt8]
  /// The flags, for reports. No decision depends on them: Apple sets these bits independently of the content.
  let flags: UInt8
  let counter: SignCount

  init(_ bytes: ArraySlice<UInt8>) throws(AuthenticatorDataRejection) {
    var rest = bytes
    guard let hash = rest.take(32), let flags = rest.popFirst(), let counter = rest.take(4) else {
      throw .tooShort(bytes.count, minimum: Self.size)
    }
    rpIDHash = hash
    self.flags = flags
    self.counter = SignCount(counter.reduce(0) { $0 << 8 | UInt32($1) })
  }
}

/// The credential in the authenticator data of an attestation: 127 bytes after the head.
struct AttestedCredential: Sendable, Hashable {
  static let size = 16 + 2 + KeyID.size + COSEKey.size

  let aaguid: [UInt8]
  let credentialID: [UInt8]
  /// X9.62, uncompressed, 65 bytes.
  let publicKey: [UInt8]

  /// Parses the bytes after the head.
  init(_ bytes: ArraySlice<UInt8>) throws(AuthenticatorDataRejection) {
    let tooShort = AuthenticatorDataRejection.tooShort(
      AuthenticatorDataHead.size + bytes.count, minimum: AuthenticatorDataHead.size + Self.size)
    var rest = bytes
    guard let aaguid = rest.take(16), let length = rest.take(2) else { throw tooShort }
    let count = length.reduce(0) { $0 << 8 | Int($1) }
    guard count == KeyID.size else { throw .credentialIDLength(count) }
    guard let credentialID = rest.take(count), let key = rest.take(COSEKey.size) else { throw tooShort }
    guard let publicKey = COSEKey.point(in: key) else { throw .malformedCredentialKey }
    self.aaguid = aaguid
    self.credentialID = credentialID
    self.publicKey = publicKey
  }
}

/// The extensions that devices with iOS 27 and later send about their app, after the fixed part of authenticator
/// data.
public struct AuthenticatorExtensions: Sendable, Hashable {
  /// The source from which the app was installed; `nil` if the device did not report it.
  public let validationCategory: ValidationCategory?
  /// The version of the app; `nil` if the device did not report it.
  public let bundleVersion: String?
  /// All extensions, including unknown ones.
  public let all: CBORMap

  static let categoryKey = "apple_validation_category_01"
  static let bundleVersionKey = "apple_bundle_version_01"

  /// Parses the bytes after the fixed part: no bytes (`nil`, as before iOS 27), or exactly one map.
  ///
  /// The length decides, not the flag. Shipping devices set the bit for extensions, Apple's own sample does not, and
  /// assertions have the bit for a credential that they do not contain.
  static func read(_ bytes: ArraySlice<UInt8>) throws(AuthenticatorDataRejection) -> AuthenticatorExtensions? {
    bytes.isEmpty ? nil : try AuthenticatorExtensions(bytes)
  }

  private init(_ bytes: ArraySlice<UInt8>) throws(AuthenticatorDataRejection) {
    let value: CBORValue
    do throws(CBORError) {
      // Authenticators write in CTAP2's canonical form, which fixes no width for floats.
      value = try CBORValue(decoding: bytes, floats: .any)
    } catch {
      throw .extensionsNotCBOR(error)
    }
    guard case .map(let map) = value else { throw .extensionsNotMap }
    all = map
    validationCategory = try map[Self.categoryKey].map(Self.category)
    bundleVersion = try map[Self.bundleVersionKey].map { value throws(AuthenticatorDataRejection) in
      guard case .text(let text) = value else { throw .malformedExtension(Self.bundleVersionKey) }
      return text
    }
  }

  /// Four bytes, the lowest first, or an unsigned integer.
  private static func category(_ value: CBORValue) throws(AuthenticatorDataRejection) -> ValidationCategory {
    switch value {
    case .bytes(let bytes) where bytes.count == 4:
      return ValidationCategory(rawValue: bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) })
    case .unsigned(let number) where number <= UInt32.max:
      return ValidationCategory(rawValue: UInt32(number))
    default:
      throw .malformedExtension(categoryKey)
    }
  }
}

/// Why authenticator data does not have the structure of WebAuthn section 6.1 and Apple's documentation.
public enum AuthenticatorDataRejection: Error, Sendable, Hashable {
  /// Bytes in all, where at least so many should be.
  case tooShort(Int, minimum: Int)
  /// Apple's credential identifiers have 32 bytes.
  case credentialIDLength(Int)
  /// Not the COSE key of a point on P-256 for ES256, in its one deterministic form of 77 bytes.
  case malformedCredentialKey
  /// Its offsets count from the extensions' first byte.
  case extensionsNotCBOR(CBORError)
  /// The bytes after the key are not a CBOR map.
  case extensionsNotMap
  /// A known extension with a value of another type.
  case malformedExtension(String)

  var isAboutExtensions: Bool {
    switch self {
    case .extensionsNotCBOR, .extensionsNotMap, .malformedExtension: true
    case .tooShort, .credentialIDLength, .malformedCredentialKey: false
    }
  }
}

extension ArraySlice<UInt8> {
  /// Takes `count` bytes off the front, if there are as many.
  fileprivate mutating func take(_ count: Int) -> [UInt8]? {
    guard self.count >= count else { return nil }
    defer { self = dropFirst(count) }
    return Array(prefix(count))
  }
}
