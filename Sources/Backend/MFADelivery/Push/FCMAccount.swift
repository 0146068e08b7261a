internal import ByteCoding
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// A service account of a Firebase project, from the file that Google's console makes.
public struct FCMAccount: Sendable {
  /// The scope of access tokens: to send messages and nothing else.
  static let scope = "https://www.googleapis.com/auth/firebase.messaging"
  /// How long an assertion is valid.
  private static let assertionLifetime: Int64 = 3600

  /// The name of the project.
  public let project: String
  /// Where an assertion is exchanged for an access token.
  let tokenURL: URL
  private let email: String
  private let keyID: String?
  private let key: _RSA.Signing.PrivateKey

  private struct File: Decodable {
    let type: String
    let project_id: String
    let private_key_id: String?
    let private_key: String
    let client_email: String
    let token_uri: String
  }

  /// Reads the file.
  ///
  /// - Throws: `PushKeyFault` unless it is the JSON of a service account with an RSA key.
  public init(json: [UInt8]) throws(PushKeyFault) {
    guard json.count <= 1 << 16, let file = try? JSONDecoder().decode(File.self, from: Data(json)),
      file.type == "service_account"
    else {
      throw PushKeyFault("it is not the JSON file of a service account, with project_id, private_key and client_email")
    }
    guard (1...64).contains(file.project_id.utf8.count), file.project_id.utf8.allSatisfy(Self.isOfProject) else {
      throw PushKeyFault("project_id is not the name of a project")
    }
    guard let url = URL(string: file.token_uri), Self.isTrustworthy(url) else {
      throw PushKeyFault("token_uri must be an https URL, or an http URL on loopback")
    }
    guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: file.private_key) else {
      throw PushKeyFault("private_key is not an RSA key of at least 2,048 bits, as PEM")
    }
    (project, tokenURL, email, keyID) = (file.project_id, url, file.client_email, file.private_key_id)
    self.key = key
  }

  /// The assertion that is exchanged for an access token (RFC 7523).
  func assertion(at now: Timestamp) throws -> String {
    let header =
      keyID.map { JSONText.object(["alg": "RS256", "typ": "JWT", "kid": $0]) }
      ?? JSONText.object(["alg": "RS256", "typ": "JWT"])
    let claims = """
      {"iss":\(JSONText.quote(email)),"scope":"\(Self.scope)","aud":\(JSONText.quote(tokenURL.absoluteString)),\
      "iat":\(now.seconds),"exp":\(now.advanced(by: .seconds(Self.assertionLifetime)).seconds)}
      """
    return try ProviderToken.signed(header: header, claims: claims, by: key)
  }

  private static func isOfProject(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x61...0x7A: true
    default: "-.:".utf8.contains(byte)
    }
  }

  private static func isTrustworthy(_ url: URL) -> Bool {
    guard let host = url.host(percentEncoded: true), !host.isEmpty, url.user == nil, url.password == nil else {
      return false
    }
    if url.scheme?.lowercased() == "https" { return true }
    return url.scheme?.lowercased() == "http" && ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
  }
}
