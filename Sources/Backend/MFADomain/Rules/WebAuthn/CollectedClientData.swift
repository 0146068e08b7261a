internal import ByteCoding
internal import Crypto
internal import Foundation

/// The client data of a ceremony (Web Authentication Level 3, section 5.8.1).
struct CollectedClientData: Sendable, Hashable {
  let type: String
  let challenge: [UInt8]
  let origin: String
  let isCrossOrigin: Bool
  let hasTopOrigin: Bool
  /// SHA-256 of the unchanged JSON, which the authenticator signed.
  let hash: [UInt8]

  private struct Members: Decodable {
    let type: String
    let challenge: String
    let origin: String
    let crossOrigin: Bool?
    let topOrigin: String?
  }

  /// Reads the JSON. Ignores unknown members, as the specification requires.
  init(json: [UInt8]) throws(WebAuthnRejection) {
    // Decoding removes a byte order mark and replaces malformed UTF-8, but the unchanged JSON was signed.
    let text = json.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(json.dropFirst(3)) : json
    guard JSONGrammar.accepts(text), let members = try? JSONDecoder().decode(Members.self, from: Data(text)),
      let challenge = Base64URL.decode(members.challenge)
    else { throw .clientData }
    type = members.type
    self.challenge = challenge
    origin = members.origin
    isCrossOrigin = members.crossOrigin ?? false
    hasTopOrigin = members.topOrigin != nil
    hash = Array(SHA256.hash(data: json))
  }

  /// The steps that both ceremonies begin with.
  func check(
    _ ceremony: KeyChallenge.Ceremony, _ challenge: [UInt8], for party: RelyingParty
  ) throws(WebAuthnRejection) {
    guard type == ceremony.clientDataType else { throw .type }
    guard constantTimeEqual(self.challenge, challenge) else { throw .challenge }
    // Bytes are compared, because texts that differ only in composition are equal as strings.
    guard party.origins.contains(where: { $0.utf8.elementsEqual(origin.utf8) }) else { throw .origin }
    // A page of another site must not use the user's key in a frame.
    guard !isCrossOrigin, !hasTopOrigin else { throw .crossOrigin }
  }
}

extension KeyChallenge.Ceremony {
  fileprivate var clientDataType: String {
    switch self {
    case .registration: "webauthn.create"
    case .authentication: "webauthn.get"
    }
  }
}
