internal import AppAttest
internal import AttestGate
internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The JSON of a registration: an object with the string `nonce`, and with the strings `keyId` and `attestation`, or,
/// with `"platform": "android"`, the list of strings `chain`. Other members are ignored. The text must be UTF-8 without
/// a byte order mark, and no object in it may repeat a name. `JSONGrammar.Limits.request` limits what it may have.
enum RegistrationBody: Decodable, Sendable, Hashable {
  case appAttest(RegistrationClaim)
  case android(AndroidRegistrationClaim)

  /// `ios` or `android`.
  var platform: String {
    switch self {
    case .appAttest: "ios"
    case .android: "android"
    }
  }

  /// Why a body is malformed.
  enum ParseError: Error, Sendable, Hashable {
    case notJSON
    case notAnObject
    case missing(String)
    case wrongType(String, expected: String)
    case unknownPlatform
  }

  init(json bytes: [UInt8]) throws(ParseError) {
    // JSONDecoder also accepts UTF-16, UTF-32 and trailing commas, and keeps one of several members with the same
    // name.
    guard JSONGrammar.accepts(bytes, within: .request) else { throw .notJSON }
    do {
      self = try JSONDecoder().decode(RegistrationBody.self, from: Data(bytes))
    } catch DecodingError.keyNotFound(let key, _) {
      throw .missing(key.stringValue)
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
      // The path of an element of the list ends with its number.
      guard let name = context.codingPath.last(where: { $0.intValue == nil })?.stringValue else { throw .notAnObject }
      throw .wrongType(name, expected: name == Member.chain.rawValue ? "a list of strings" : "a string")
    } catch DecodingError.dataCorrupted {
      throw .unknownPlatform
    } catch {
      throw .notJSON
    }
  }

  private enum Member: String, CodingKey { case platform, keyId, attestation, chain, nonce }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Member.self)
    func text(_ member: Member) throws -> String { try members.decode(String.self, forKey: member) }
    switch try members.contains(.platform) ? Self.platform(in: members) : .ios {
    case .ios:
      self = .appAttest(
        RegistrationClaim(keyID: try text(.keyId), attestation: try text(.attestation), nonce: try text(.nonce)))
    case .android:
      self = .android(
        AndroidRegistrationClaim(chain: try members.decode([String].self, forKey: .chain), nonce: try text(.nonce)))
    }
  }
  private static func platform(in members: KeyedDecodingContainer<Member>) throws -> Platform {
    let text = try members.decode(String.self, forKey: .platform)
    guard let platform = Platform.allCases.first(where: { $0.rawValue.hasSameBytes(as: text) }) else {
      throw DecodingError.dataCorruptedError(forKey: .platform, in: members, debugDescription: "an unknown platform")
    }
    return platform
  }
}

extension RegistrationBody {
  /// The claimed key, for the log; `nil` for Android, where the chain names it.
  var claimedKey: KeyHash? {
    if case .appAttest(let claim) = self { KeyID(received: claim.keyID).map(KeyHash.init) } else { nil }
  }
}
