internal import ByteCoding
internal import Cryptography
internal import Foundation

/// Verifies the authorization of a request to the simulated data service.
struct SimulatedAuthorization: Sendable {
  /// The time for which a token is good, and by which its clock may be ahead.
  static let (life, mostAhead) = (Duration.seconds(3600), Duration.seconds(300))

  let teamID: String
  let keyID: String
  let publicKey: P256PublicKey

  private struct Header: Decodable {
    let alg: String
    let kid: String
  }

  private struct Claims: Decodable {
    let iss: String
    let iat: Int64
  }

  /// Returns the rule that `text`, the value of `Authorization`, breaks; `nil` for none.
  func fault(of text: String?, at now: Timestamp) -> String? {
    guard let text else { return "no Authorization" }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let signature = Base64URL.decode(parts[2]),
      let header: Header = Self.decoded(parts[0]), let claims: Claims = Self.decoded(parts[1])
    else { return "Authorization is not a JWT with alg, kid, iss and iat, without Bearer" }
    guard header.alg == "ES256" else { return "alg is not ES256" }
    guard header.kid == keyID else { return "kid is not \(keyID)" }
    guard publicKey.isValidES256Signature(signature, for: Array("\(parts[0]).\(parts[1])".utf8)) else {
      return "the signature is not one of the key \(keyID)"
    }
    guard claims.iss == teamID else { return "iss is not \(teamID)" }
    let age = now.since(Timestamp(seconds: claims.iat))
    guard age < Self.life else { return "iat is more than an hour ago" }
    return age < Duration.zero - Self.mostAhead ? "iat is in the future" : nil
  }

  private static func decoded<Value: Decodable>(_ part: Substring) -> Value? {
    Base64URL.decode(part).flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
  }
}
