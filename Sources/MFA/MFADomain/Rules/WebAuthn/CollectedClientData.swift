internal import ByteCoding
internal import Crypto
internal import Foundation

/// What the client saw when it asked the authenticator (Web Authentication Level 3, section 5.8.1).
struct CollectedClientData: Sendable, Hashable {
  let type: String
  let challenge: [UInt8]
  let origin: String
  let isCrossOrigin: Bool
  let hasTopOrigin: Bool
  /// SHA-256 of the JSON as it came, which is what the authenticator signed.
  let hash: [UInt8]

  private struct Members: Decodable {
    let type: String
    let challenge: String
    let origin: String
    let crossOrigin: Bool?
    let topOrigin: String?
  }

  /// Reads the JSON. Members that are not known are passed over, as the specification wants it.
  init(json: [UInt8]) throws(WebAuthnFault) {
    // Decoding strips a byte order mark and repairs what is not UTF-8; what was signed is the JSON as it came.
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
  ) throws(WebAuthnFault) {
    guard type == ceremony.clientDataType else { throw .type }
    guard constantTimeEqual(self.challenge, challenge) else { throw .challenge }
    // By their bytes: texts that differ in composition alone are equal as such.
    guard party.origins.contains(where: { $0.utf8.elementsEqual(origin.utf8) }) else { throw .origin }
    // No page of another site is to ask for the user's key in a frame.
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
