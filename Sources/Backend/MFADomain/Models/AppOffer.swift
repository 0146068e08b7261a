public import ByteCoding
public import Foundation

/// The secret of a further authenticator app, offered to one session. It is not in use until a code of it was given.
/// A session has one offer: a new one replaces it.
public struct AppOffer: Sendable, Hashable {
  /// How long after the offer a code is accepted.
  public static let lifetime = Duration.seconds(600)

  /// The id that the app gets.
  public let id: UUID
  public let sessionID: UUID
  public let userID: UUID
  public let name: AppName
  public var secret: Sealed
  public let parameters: TOTPParameters
  public let expiresAt: Timestamp

  public init(
    id: UUID, sessionID: UUID, userID: UUID, name: AppName, secret: Sealed, parameters: TOTPParameters,
    expiresAt: Timestamp
  ) {
    self.id = id
    self.sessionID = sessionID
    self.userID = userID
    self.name = name
    self.secret = secret
    self.parameters = parameters
    self.expiresAt = expiresAt
  }
}

/// The user's name for an authenticator app: 1 to 128 characters, none of them a control or an invisible character.
public struct AppName: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    guard !text.isEmpty else { throw InvalidValue(field: "name", rule: "is empty") }
    self.text = try DeviceModel(text, field: "name").text
  }

  /// The name as a store kept it.
  public init(kept text: String) { self.text = text }
}

/// How a user names an authenticator of the account.
public enum AuthenticatorID: Sendable, Hashable {
  /// The app that was set up together with the backup codes.
  case first
  /// An app that the user has added, or a token that an operator has assigned.
  case further(UUID)

  /// `first`, or a UUID.
  public var text: String {
    switch self {
    case .first: Self.firstText
    case .further(let id): id.text
    }
  }

  /// - Throws: for a text that is neither `first` nor a UUID.
  public init(_ text: String) throws(InvalidValue) {
    if text.hasBytes(of: Self.firstText) {
      self = .first
    } else if let id = UUID(text: text) {
      self = .further(id)
    } else {
      throw InvalidValue(field: "id", rule: "must be first or a UUID")
    }
  }

  private static let firstText = "first"
}
