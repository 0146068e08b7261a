public import ByteCoding
internal import Crypto
public import Foundation

/// A user of an identity provider, as an ID token names it: `iss` and `sub` (OpenID Connect Core 1.0, section 2).
public struct ProviderSubject: Sendable, Hashable {
  /// The most bytes of a subject.
  public static let longest = 255

  public let issuer: String
  public let subject: String

  /// The user that a verified token names.
  ///
  /// - Throws: `FederationRejection.subject` for a subject that is empty or longer than 255 bytes, or that has a
  ///   character which a reader does not see: a database or a list could take it for another one.
  public init(issuer: String, claimed subject: String) throws(FederationRejection) {
    guard (1...Self.longest).contains(subject.utf8.count), subject.unicodeScalars.allSatisfy(\.isVisible) else {
      throw .subject
    }
    self.init(issuer: issuer, subject: subject)
  }

  /// The user as a store kept it.
  public init(issuer: String, subject: String) {
    self.issuer = issuer
    self.subject = subject
  }

  // As databases compare them.
  public static func == (first: ProviderSubject, second: ProviderSubject) -> Bool {
    first.issuer.hasBytes(of: second.issuer) && first.subject.hasBytes(of: second.subject)
  }

  public func hash(into hasher: inout Hasher) {
    issuer.addBytes(to: &hasher)
    subject.addBytes(to: &hasher)
  }
}

/// The connection of an account to a user of an identity provider. An account has at most one for each issuer, and a
/// user of a provider is connected to at most one account.
public struct FederatedIdentity: Sendable, Hashable {
  public let userID: UUID
  public let subject: ProviderSubject
  public let createdAt: Timestamp
  public var lastUsedAt: Timestamp?

  public init(userID: UUID, subject: ProviderSubject, createdAt: Timestamp, lastUsedAt: Timestamp? = nil) {
    self.userID = userID
    self.subject = subject
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
  }
}

/// A challenge that an ID token answers by its nonce: for one app instance, once, within its lifetime.
public struct FederationChallenge: Sendable, Hashable {
  /// The time for the user to sign in at the provider. The same time limits the age of the token.
  public static let lifetime = Duration.seconds(600)

  public let id: UUID
  /// 32 bytes.
  public let bytes: [UInt8]
  /// The app instance that asked for it.
  public let binding: Binding
  public let expiresAt: Timestamp
  public var isUsed: Bool

  public init(id: UUID, bytes: [UInt8], binding: Binding, expiresAt: Timestamp, isUsed: Bool = false) {
    self.id = id
    self.bytes = bytes
    self.binding = binding
    self.expiresAt = expiresAt
    self.isUsed = isUsed
  }

  /// The `nonce` of a token that answers the challenge with these bytes: their SHA-256 in base64url without padding.
  public static func nonce(of bytes: [UInt8]) -> String { Base64URL.encode(Array(SHA256.hash(data: bytes))) }
}
