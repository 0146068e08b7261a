public import Foundation

/// What the client knows about the sign-in that an ID token is for.
public struct IDTokenExpectation: Sendable, Hashable {
  /// The issuer, exactly as in its discovery document.
  public var issuer: String
  /// The client identifier.
  public var clientID: String
  /// Further audiences that the client trusts.
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

  /// Creates an expectation.
  public init(
    issuer: String, clientID: String, trustedAudiences: Set<String> = [], nonce: String? = nil,
    accessToken: String? = nil, subject: String? = nil, time: Date, leeway: TimeInterval = 60,
    longestAge: TimeInterval = 600
  ) {
    self.issuer = issuer
    self.clientID = clientID
    self.trustedAudiences = trustedAudiences
    self.nonce = nonce
    self.accessToken = accessToken
    self.subject = subject
    self.time = time
    self.leeway = leeway
    self.longestAge = longestAge
  }
}

extension IDTokenExpectation: CustomReflectable {
  /// The issuer and the client: nonce and access token stay out of logs.
  public var customMirror: Mirror { Mirror(self, children: ["issuer": issuer, "clientID": clientID]) }
}
