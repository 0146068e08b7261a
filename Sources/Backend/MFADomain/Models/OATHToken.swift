public import ByteCoding
public import Foundation
public import OneTimePasswords

/// An authenticator in addition to the first app of an account. There are two origins:
///
/// - An operator has imported it: a hardware token, or a secret of another server. It belongs to one account at most.
/// - A user has added it: a further authenticator app. It has a name, and exists as long as it belongs to its user.
public struct OATHToken: Sendable, Hashable {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The counter is the time (RFC 6238).
    case totp
    /// The counter counts codes (RFC 4226).
    case hotp
  }

  /// How many tokens and added apps together an account may have. Each of them makes a guess more likely to be right.
  public static let mostOfAccount = 5
  /// The greatest counter of an import.
  public static let largestCounter: Int64 = 1 << 48

  public let id: UUID
  public let serial: TokenSerial
  /// The maker, or another text for display.
  public let maker: String
  /// The user's name for an app that the user has added; `nil` for a token of operators.
  public var name: AppName?
  /// The owner; `nil` for a token that is not assigned.
  public var userID: UUID?
  public let kind: Kind
  public var secret: Sealed
  /// How a counter becomes a code, with 6 to 8 digits.
  public let password: OneTimePassword
  /// The number of digits of a code.
  public let digits: Int
  /// The seconds of a step, 15 to 300; 30 for HOTP, which has no steps.
  public let period: Int
  /// The least counter, or step, whose code was not spent.
  public var next: Int64
  /// By how many steps the clock of the token is ahead of this one, as its last codes showed.
  public var drift: Int64
  public let createdAt: Timestamp
  public var assignedAt: Timestamp?
  public var lastUsedAt: Timestamp?

  /// `nil` if digits or period are outside their bounds.
  public init?(
    id: UUID, serial: TokenSerial, maker: String, name: AppName? = nil, userID: UUID?, kind: Kind, secret: Sealed,
    algorithm: TOTPAlgorithm,
    digits: Int, period: Int, next: Int64, drift: Int64, createdAt: Timestamp, assignedAt: Timestamp? = nil,
    lastUsedAt: Timestamp? = nil
  ) {
    guard (6...8).contains(digits), (15...300).contains(period),
      let password = try? OneTimePassword(algorithm: algorithm, digits: digits)
    else { return nil }
    self.id = id
    self.serial = serial
    self.maker = maker
    self.name = name
    self.userID = userID
    self.kind = kind
    self.secret = secret
    self.password = password
    self.digits = digits
    self.period = period
    self.next = next
    self.drift = drift
    self.createdAt = createdAt
    self.assignedAt = assignedAt
    self.lastUsedAt = lastUsedAt
  }
}

/// The number by which operators name a token: 1 to 64 printable ASCII characters without spaces, unique among all
/// tokens.
public struct TokenSerial: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw InvalidValue(field: "serial", rule: "has 1 to 64 printable ASCII characters and no spaces")
    }
    self.text = text
  }

  /// The number of an app that a user has added.
  init(ofApp id: UUID) { text = "app-\(id.text)" }
}

/// A token as a file describes it.
public struct ImportedToken: Sendable, Hashable {
  /// Where the file has it, for faults: `line 7`.
  public let place: String
  public let serial: TokenSerial
  public let maker: String
  public let kind: OATHToken.Kind
  public let secret: [UInt8]
  public let algorithm: TOTPAlgorithm
  public let digits: Int
  public let period: Int
  /// The next counter of HOTP; 0 for TOTP.
  public let counter: Int64
  /// The steps that the clock of the token is ahead; 0 for HOTP.
  public let drift: Int64
  /// The account that gets the token; `nil` for none.
  public let username: Username?

  /// Creates the token.
  ///
  /// - Throws: `InvalidValue` if a value is outside its bounds: a secret has 10 to 128 bytes, a code 6 to 8 digits, a
  ///   step 15 to 300 seconds.
  public init(
    place: String, serial: String, maker: String = "", kind: OATHToken.Kind, secret: [UInt8],
    algorithm: TOTPAlgorithm = .sha1, digits: Int = 6, period: Int = 30, counter: Int64 = 0, drift: Int64 = 0,
    username: Username? = nil
  ) throws(InvalidValue) {
    self.serial = try TokenSerial(serial)
    guard (10...128).contains(secret.count) else {
      throw InvalidValue(field: "secret", rule: "has 10 to 128 bytes, not \(secret.count)")
    }
    guard (6...8).contains(digits) else { throw InvalidValue(field: "digits", rule: "is 6, 7 or 8") }
    guard (15...300).contains(period) else { throw InvalidValue(field: "period", rule: "is 15 to 300 seconds") }
    guard (0...OATHToken.largestCounter).contains(counter) else {
      throw InvalidValue(field: "counter", rule: "is 0 to 2 to the power of 48")
    }
    guard (-OATHToken.resyncReach...OATHToken.resyncReach).contains(drift) else {
      throw InvalidValue(field: "drift", rule: "is at most \(OATHToken.resyncReach) steps")
    }
    guard maker.utf8.count <= 128, maker.unicodeScalars.allSatisfy(\.isVisible) else {
      throw InvalidValue(field: "manufacturer", rule: "has at most 128 bytes and no invisible characters")
    }
    self.place = place
    self.maker = maker
    self.kind = kind
    self.secret = secret
    self.algorithm = algorithm
    self.digits = digits
    self.period = period
    self.counter = counter
    self.drift = drift
    self.username = username
  }
}
