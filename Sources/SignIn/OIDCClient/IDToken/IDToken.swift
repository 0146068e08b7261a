internal import ByteCoding
public import Foundation

/// An ID token that was read and not yet verified (OpenID Connect Core 1.0, section 2; RFC 7515, section 7.1).
public struct IDToken: Sendable, Hashable {
  /// The longest token that is read, in bytes: 64 KiB.
  public static let longest = 65_536

  /// The signature algorithm that the header names.
  public let algorithm: String
  /// The key that the header names.
  public let keyID: String?
  /// What the provider says about the user and the sign-in.
  public let claims: Claims
  /// The token as it came.
  public let text: String

  /// The claims that rules look at. Others are ignored.
  public struct Claims: Sendable, Hashable {
    /// `iss`
    public let issuer: String?
    /// `sub`
    public let subject: String?
    /// `aud`, one or a list
    public let audiences: [String]
    /// `azp`
    public let authorizedParty: String?
    /// `exp`
    public let expiresAt: Date?
    /// `iat`
    public let issuedAt: Date?
    /// `nonce`
    public let nonce: String?
    /// `at_hash`
    public let accessTokenHash: String?
    /// `email`
    public let email: String?
    /// `preferred_username`
    public let preferredUsername: String?
    /// `name`
    public let name: String?
  }

  /// Reads a token: three parts in canonical base64url, of which the first two are JSON objects.
  ///
  /// - Throws: `.malformed`.
  public init(_ text: String) throws(IDTokenRejection) {
    guard text.utf8.count <= Self.longest else { throw .malformed("it is longer than 64 KiB") }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      throw .malformed(parts.count == 5 ? "it is encrypted, which is not supported" : "it has not three parts")
    }
    guard let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
      Base64URL.decode(parts[2]) != nil
    else { throw .malformed("a part is not base64url without padding") }
    guard let readHeader = try? JSONDecoder().decode(Header.self, from: Data(header)) else {
      throw .malformed("its header is not a JSON object with alg")
    }
    // What must be understood and is not known here cannot be (RFC 7515, section 4.1.11).
    guard readHeader.crit == nil else { throw .malformed("its header has crit") }
    algorithm = readHeader.alg
    keyID = readHeader.kid
    do { self.claims = try JSONDecoder().decode(Claims.self, from: Data(claims)) } catch {
      throw .malformed("its claims are not a JSON object with the types of OpenID Connect")
    }
    self.text = text
  }

  private struct Header: Decodable {
    let alg: String
    let kid: String?
    let crit: [String]?
  }
}

extension IDToken.Claims: Decodable {
  private enum CodingKeys: String, CodingKey {
    case issuer = "iss"
    case subject = "sub"
    case audiences = "aud"
    case authorizedParty = "azp"
    case expiresAt = "exp"
    case issuedAt = "iat"
    case nonce
    case accessTokenHash = "at_hash"
    case email
    case preferredUsername = "preferred_username"
    case name
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func text(_ key: CodingKeys) throws -> String? { try container.decodeIfPresent(String.self, forKey: key) }
    func date(_ key: CodingKeys) throws -> Date? {
      try container.decodeIfPresent(Double.self, forKey: key).map { Date(timeIntervalSince1970: $0) }
    }
    issuer = try text(.issuer)
    subject = try text(.subject)
    if let one = try? container.decodeIfPresent(String.self, forKey: .audiences) {
      audiences = [one]
    } else {
      audiences = try container.decodeIfPresent([String].self, forKey: .audiences) ?? []
    }
    authorizedParty = try text(.authorizedParty)
    expiresAt = try date(.expiresAt)
    issuedAt = try date(.issuedAt)
    nonce = try text(.nonce)
    accessTokenHash = try text(.accessTokenHash)
    email = try? text(.email)
    preferredUsername = try? text(.preferredUsername)
    name = try? text(.name)
  }
}

extension IDToken: CustomStringConvertible, CustomReflectable {
  /// The algorithm.
  public var description: String { "ID token, \(algorithm)" }
  /// No members: the token stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
