internal import ByteCoding
internal import CBOR
internal import Crypto

/// The signed data of an authenticator (Web Authentication Level 3, section 6.1).
struct WebAuthnAuthenticatorData: Sendable, Hashable {
  struct Flags: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let userPresent = Flags(rawValue: 0x01)
    static let userVerified = Flags(rawValue: 0x04)
    static let backupEligible = Flags(rawValue: 0x08)
    static let backedUp = Flags(rawValue: 0x10)
    static let attestedCredential = Flags(rawValue: 0x40)
    static let extensions = Flags(rawValue: 0x80)
  }

  /// A credential that was just made.
  struct WebAuthnAttestedCredential: Sendable, Hashable {
    let id: CredentialID
    let publicKey: CredentialPublicKey
  }

  /// The unchanged bytes, which a signature covers.
  let bytes: [UInt8]
  /// SHA-256 of the relying party's id; 32 bytes.
  let relyingPartyHash: [UInt8]
  let flags: Flags
  let signatureCount: UInt32
  let credential: WebAuthnAttestedCredential?

  /// The length without a credential and extensions.
  static let leastLength = 37

  /// - Throws: `.authenticatorData` unless the bytes end where the flags say that they do.
  init(_ bytes: [UInt8]) throws(WebAuthnRejection) {
    guard bytes.count >= Self.leastLength else { throw .authenticatorData }
    self.bytes = bytes
    relyingPartyHash = Array(bytes[..<32])
    flags = Flags(rawValue: bytes[32])
    signatureCount = bytes[33..<37].reduce(0) { $0 << 8 | UInt32($1) }
    var rest = bytes[Self.leastLength...]
    credential = flags.contains(.attestedCredential) ? try Self.takeCredential(from: &rest) : nil
    if flags.contains(.extensions) { try Self.passExtensions(in: &rest) }
    guard rest.isEmpty else { throw .authenticatorData }
  }

  /// AAGUID (16 bytes), length of the id (2), id, COSE key (section 6.5.1). The AAGUID names the model. Without
  /// attestation it is unproved, so it is not kept.
  private static func takeCredential(from rest: inout ArraySlice<UInt8>) throws(WebAuthnRejection)
    -> WebAuthnAttestedCredential
  {
    guard rest.count >= 18 else { throw .authenticatorData }
    let length = rest.dropFirst(16).prefix(2).reduce(0) { $0 << 8 | Int($1) }
    rest = rest.dropFirst(18)
    guard length <= rest.count else { throw .authenticatorData }
    guard let id = CredentialID(bytes: Array(rest.prefix(length))) else { throw .credentialID }
    rest = rest.dropFirst(length)
    let key = try item(in: rest, or: .publicKey)
    let encoded = Array(rest.prefix(key.count))
    rest = rest.dropFirst(key.count)
    return WebAuthnAttestedCredential(id: id, publicKey: try CredentialPublicKey(cose: encoded))
  }

  /// No extensions are requested. Unrequested ones are parsed and ignored.
  private static func passExtensions(in rest: inout ArraySlice<UInt8>) throws(WebAuthnRejection) {
    // CTAP2's canonical form fixes no width for floats.
    let found = try item(in: rest, floats: .any, or: .extensions)
    guard case .map(let map) = found.value, map.pairs.allSatisfy({ $0.key.isText }) else { throw .extensions }
    rest = rest.dropFirst(found.count)
  }

  private static func item(
    in bytes: ArraySlice<UInt8>, floats: CBORFloatWidths = .shortest, or fault: WebAuthnRejection
  ) throws(WebAuthnRejection) -> (value: CBORValue, count: Int) {
    do {
      return try CBORValue.first(in: bytes, floats: floats)
    } catch {
      throw fault
    }
  }

  /// The steps about it that both ceremonies have in common.
  func check(for party: RelyingParty) throws(WebAuthnRejection) {
    let expected = Array(SHA256.hash(data: Array(party.id.utf8)))
    guard constantTimeEqual(relyingPartyHash, expected) else { throw .relyingParty }
    guard flags.contains(.userPresent) else { throw .userPresence }
    if party.userVerification == .required, !flags.contains(.userVerified) { throw .userVerification }
    if flags.contains(.backedUp), !flags.contains(.backupEligible) { throw .backupState }
  }
}

extension CBORValue {
  fileprivate var isText: Bool { if case .text = self { true } else { false } }
}
