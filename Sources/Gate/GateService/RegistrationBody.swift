internal import AttestGate
internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The JSON of a registration: an object with the strings `keyId`, `attestation` and `nonce`. Other members are
/// ignored. The text must be UTF-8 without a byte order mark, and no object in it may repeat a name.
struct RegistrationBody: Decodable {
  private let keyId: String
  private let attestation: String
  private let nonce: String

  var claim: RegistrationClaim { RegistrationClaim(keyID: keyId, attestation: attestation, nonce: nonce) }

  /// Why a body is malformed.
  enum ParseError: Error, Sendable, Hashable {
    case notJSON
    case notAnObject
    case missing(String)
    case notAString(String)
  }

  init(json bytes: [UInt8]) throws(ParseError) {
    // JSONDecoder also accepts UTF-16, UTF-32 and trailing commas, and keeps one of several members with the same
    // name.
    guard JSONGrammar.accepts(bytes) else { throw .notJSON }
    do {
      self = try JSONDecoder().decode(RegistrationBody.self, from: Data(bytes))
    } catch DecodingError.keyNotFound(let key, _) {
      throw .missing(key.stringValue)
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
      throw context.codingPath.last.map { .notAString($0.stringValue) } ?? .notAnObject
    } catch {
      throw .notJSON
    }
  }
}
