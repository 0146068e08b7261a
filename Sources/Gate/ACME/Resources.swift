public import ByteCoding

/// The places of a server's operations (RFC 8555 section 7.1.1).
public struct Directory: Sendable, Hashable, Codable {
  public struct Metadata: Sendable, Hashable, Codable {
    /// At most 500 characters, none of them a control character.
    public var termsOfService: String?
    public var externalAccountRequired: Bool?
    /// The names of the profiles that an order may choose, each with its description (draft-ietf-acme-profiles); `nil`
    /// if there are none.
    public var profiles: [String: String]?

    public init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: CodingKeys.self)
      let terms = try members.decodeIfPresent(String.self, forKey: .termsOfService)
      termsOfService = terms.map { ServerText.bounded($0) }
      externalAccountRequired = try members.decodeIfPresent(Bool.self, forKey: .externalAccountRequired)
      // Another form than the draft's concerns only orders that choose a profile.
      let profiles = try? members.decodeIfPresent([String: String].self, forKey: .profiles)
      self.profiles = profiles?.mapValues { ServerText.bounded($0) }
    }
  }

  public var newNonce: String
  public var newAccount: String
  public var newOrder: String
  /// Where the server recommends when to renew (RFC 9773); `nil` if it does not.
  public var renewalInfo: String?
  public var meta: Metadata?
}

extension Directory {
  /// - Throws: `ACMEError.unknownProfile` unless `name` is `nil` or offered.
  public func requireProfile(_ name: String?) throws(ACMEError) {
    guard let name, meta?.profiles?[name] == nil else { return }
    throw .unknownProfile(name: name, offered: meta?.profiles?.keys.sorted() ?? [])
  }
}

/// An account (RFC 8555 section 7.1.2).
struct Account: Decodable {
  var status: String
}

/// An order (RFC 8555 section 7.1.3).
struct Order: Decodable {
  enum Status: String, Decodable { case pending, ready, processing, valid, invalid }

  var status: Status
  var authorizations: [String]
  var finalize: String
  var certificate: String?
  var error: Problem?
}

/// The state of one name of an order (RFC 8555 section 7.1.4).
struct Authorization: Decodable {
  enum Status: String, Decodable { case pending, valid, invalid, deactivated, expired, revoked }

  var identifier: Identifier
  var status: Status
  var challenges: [Challenge]
  /// Whether the order is for the wildcard of the identifier.
  var wildcard: Bool?

  /// The name that was ordered.
  var name: String { wildcard == true ? "*.\(identifier.value)" : identifier.value }

  /// The identifier that was ordered; `nil` for a type that the gate never orders.
  var ordered: Identifier? { Identifier(type: identifier.type, value: name).normalized }

  func challenge(_ kind: ChallengeKind) -> Challenge? { challenges.first { $0.type == kind.rawValue } }
}

/// A way to prove control of a name (RFC 8555 section 7.1.5).
struct Challenge: Decodable {
  var type: String
  var url: String
  var token: String?
  var error: Problem?

  /// The most characters of a token that is used. Usual ones have 43.
  private static let longestToken = 512

  /// The token, if it may be a part of paths and texts: not empty, and only characters of the base64url alphabet (RFC
  /// 8555 section 8). It need not be the base64url of any bytes.
  var usableToken: String? {
    guard let token, (1...Self.longestToken).contains(token.utf8.count) else { return nil }
    let isLegal = token.utf8.allSatisfy { character in
      switch character {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    return isLegal ? token : nil
  }
}

/// When a server wants a certificate to be renewed (RFC 9773 section 4.2).
public struct RenewalWindow: Sendable, Hashable, Codable {
  public var start: Timestamp
  public var end: Timestamp
  /// A page that explains the recommendation, if there is one: at most 500 characters, none of them a control
  /// character.
  public var explanation: String?

  private struct Document: Codable {
    struct Window: Codable { var start, end: String }
    var suggestedWindow: Window
    var explanationURL: String?
  }

  /// Creates a window.
  public init(start: Timestamp, end: Timestamp, explanation: String? = nil) {
    (self.start, self.end, self.explanation) = (start, end, explanation.map { ServerText.bounded($0) })
  }

  public init(from decoder: any Decoder) throws {
    let document = try Document(from: decoder)
    guard let start = Timestamp(rfc3339: document.suggestedWindow.start),
      let end = Timestamp(rfc3339: document.suggestedWindow.end), start < end
    else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "the suggested window is not a period"))
    }
    self.init(start: start, end: end, explanation: document.explanationURL)
  }

  public func encode(to encoder: any Encoder) throws {
    try Document(
      suggestedWindow: .init(start: start.description, end: end.description), explanationURL: explanation
    ).encode(to: encoder)
  }
}
