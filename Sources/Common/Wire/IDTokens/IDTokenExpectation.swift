#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// What the client knows about the sign-in that an ID token is for.
public struct IDTokenExpectation: Sendable, Hashable {
  /// The difference between the clocks of provider and client that is usually allowed, in seconds.
  public static let usualLeeway: TimeInterval = 300

  /// The issuer, exactly as in its discovery document.
  public var issuer: String
  /// The client identifier.
  public var clientID: String
  /// Further identifiers of the same client, such as those of an app on other platforms. A token may be for any of them,
  /// and any of them may be its authorized party.
  public var otherClientIDs: Set<String>
  /// Further audiences that the client trusts. A token that is for none but these is refused.
  public var trustedAudiences: Set<String>
  /// The nonce of the request; `nil` if there was none, as in a refresh.
  public var nonce: String?
  /// The access token that came with it; `nil` if `at_hash` is not to be compared.
  public var accessToken: String?
  /// The subject of the tokens that a refresh replaces; `nil` at a sign-in.
  public var subject: String?
  /// Now.
  public var time: Date
  /// The largest difference between the clocks of provider and client, in seconds.
  public var leeway: TimeInterval
  /// The longest time between issue and receipt, in seconds, beyond the leeway.
  public var longestAge: TimeInterval

  /// Whether a token that has expired is accepted, as that of an earlier sign-in.
  package var ignoresExpiry = false

  /// Creates an expectation.
  public init(
    issuer: String, clientID: String, otherClientIDs: Set<String> = [], trustedAudiences: Set<String> = [],
    nonce: String? = nil, accessToken: String? = nil, subject: String? = nil, time: Date,
    leeway: TimeInterval = Self.usualLeeway, longestAge: TimeInterval = 600
  ) {
    self.issuer = issuer
    self.clientID = clientID
    self.otherClientIDs = otherClientIDs
    self.trustedAudiences = trustedAudiences
    self.nonce = nonce
    self.accessToken = accessToken
    self.subject = subject
    self.time = time
    self.leeway = leeway
    self.longestAge = longestAge
  }

  /// Whether a token of that time was issued too long ago to be of this sign-in.
  package func isTooOld(_ issued: Date) -> Bool { time.timeIntervalSince(issued) > longestAge + leeway }

  /// Whether a token has expired, or does not say when it does.
  package func hasExpired(_ claims: IDToken.Claims) -> Bool {
    claims.expiresAt.map { time >= $0.addingTimeInterval(leeway) } ?? true
  }

  /// Whether `name` is this client.
  package func isClient(_ name: String) -> Bool {
    name.isIdentical(to: clientID) || otherClientIDs.contains(where: name.isIdentical)
  }
}

extension IDTokenExpectation: CustomReflectable {
  /// The issuer and the client: nonce and access token stay out of logs.
  public var customMirror: Mirror { Mirror(self, children: ["issuer": issuer, "clientID": clientID]) }
}
