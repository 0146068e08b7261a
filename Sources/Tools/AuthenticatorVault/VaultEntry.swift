internal import Crypto
public import Foundation
public import OneTimePasswords

/// One secret of the vault, and what its codes are like.
public struct VaultEntry: Sendable, Hashable, Identifiable {
  /// How a code is computed.
  public enum Kind: Sendable, Hashable {
    /// From the time, in steps of so many seconds: 1 to 300.
    case totp(period: Int)
    /// From a counter.
    case hotp
    /// From the time, with Steam's alphabet: SHA-1, five characters, 30 seconds.
    case steam
    /// By a method that has no place in links, by its name in the file that it came from. It is kept and exported. Only
    /// `motp` with a PIN has a code.
    case other(String)
  }

  /// Identifies the entry on all devices, as the text of a UUID.
  ///
  /// It is computed from what determines the codes: secret, kind, algorithm, digits and period. Two devices that import
  /// the same secret thus have the same entry. A later edit does not change it.
  public let id: String
  /// The service; may be empty.
  public var issuer: String
  /// The name at the service; may be empty.
  public var account: String
  /// The secret, at least one byte.
  public let secret: [UInt8]
  /// How a code is computed.
  public var kind: Kind
  /// The hash function.
  public var algorithm: TOTPAlgorithm
  /// The digits of a code, 5 to 10. Steam's codes ignore it.
  public var digits: Int
  /// The counter of the next code of `hotp`. It never decreases, also not by a merge.
  public var counter: UInt64
  /// The user's own text.
  public var note: String
  /// The groups that the entry is in, sorted.
  public var tags: [String]
  /// When the entry came into being, in milliseconds since 1970.
  public var createdAt: Int64
  /// When the user last changed it, in milliseconds since 1970. The counter has no part in it.
  public internal(set) var updatedAt: Int64
  /// Members of later versions and of other apps. They are kept.
  public var otherFields: [String: JSONValue]

  /// Creates an entry.
  ///
  /// - Parameters:
  ///   - secret: At least one byte.
  ///   - time: When it came into being, in milliseconds since 1970.
  public init(
    issuer: String, account: String, secret: [UInt8], kind: Kind = .totp(period: 30), algorithm: TOTPAlgorithm = .sha1,
    digits: Int = 6, counter: UInt64 = 0, note: String = "", tags: [String] = [], at time: Int64,
    otherFields: [String: JSONValue] = [:]
  ) {
    id = Self.id(secret: secret, kind: kind, algorithm: algorithm, digits: digits)
    self.issuer = issuer
    self.account = account
    self.secret = secret
    self.kind = kind
    self.algorithm = algorithm
    self.digits = digits
    self.counter = counter
    self.note = note
    self.tags = Set(tags).sorted()
    createdAt = time
    updatedAt = time
    self.otherFields = otherFields
  }

  init(
    id: String, issuer: String, account: String, secret: [UInt8], kind: Kind, algorithm: TOTPAlgorithm, digits: Int,
    counter: UInt64, note: String, tags: [String], createdAt: Int64, updatedAt: Int64,
    otherFields: [String: JSONValue]
  ) {
    self.id = id
    self.issuer = issuer
    self.account = account
    self.secret = secret
    self.kind = kind
    self.algorithm = algorithm
    self.digits = digits
    self.counter = counter
    self.note = note
    self.tags = tags
    self.createdAt = createdAt
    self.updatedAt = updatedAt
    self.otherFields = otherFields
  }

  /// The identifier of an entry that is made of the same codes. It is another one than `id` if another program wrote
  /// the vault, or if the digits were edited.
  public var codesID: String { Self.id(secret: secret, kind: kind, algorithm: algorithm, digits: digits) }

  /// `issuer: account`, or the one that is not empty.
  public var name: String {
    switch (issuer.isEmpty, account.isEmpty) {
    case (true, true): "(no name)"
    case (true, false): account
    case (false, true): issuer
    case (false, false): "\(issuer): \(account)"
    }
  }

  /// A version 8 UUID (RFC 9562 section 5.8) of a SHA-256 hash. It stands inside the encrypted vault only.
  private static func id(secret: [UInt8], kind: Kind, algorithm: TOTPAlgorithm, digits: Int) -> String {
    let method =
      switch kind {
      case .totp(let period): "totp/\(algorithm.rawValue)/\(digits)/\(period)"
      case .hotp: "hotp/\(algorithm.rawValue)/\(digits)"
      case .steam: "steam"
      case .other(let name): "other/\(name)"
      }
    var hash = Array(SHA256.hash(data: Array("sallyport authenticator entry/\(method)\0".utf8) + secret))
    hash[6] = hash[6] & 0x0F | 0x80
    hash[8] = hash[8] & 0x3F | 0x80
    let uuid = hash.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    return uuid.uuidString.lowercased()
  }
}

extension VaultEntry {
  /// The seconds of a step; `nil` if the time has no part in the code.
  public var period: Int? {
    switch kind {
    case .totp(let period): period
    case .steam: 30
    case .hotp: nil
    case .other: MobileOTP(self)?.period
    }
  }

  /// The code at `time`: for `hotp`, that of the present counter; `nil` for an unknown kind, and for Mobile-OTP
  /// without a PIN.
  ///
  /// - Throws: `OTPError` for a time before 1970 or beyond the year 9999.
  public func code(at time: Date) throws(OTPError) -> String? {
    let method: OneTimePassword
    switch kind {
    case .steam: method = .steam
    case .totp, .hotp: method = try OneTimePassword(algorithm: algorithm, digits: digits)
    case .other:
      guard let mobile = MobileOTP(self) else { return nil }
      return mobile.code(step: try OneTimePassword.step(at: time, period: mobile.period))
    }
    guard let period else { return method.code(secret: secret, counter: counter) }
    return method.code(secret: secret, counter: try OneTimePassword.step(at: time, period: period))
  }

  /// The entry that `uri` describes, which came into being at `time`, in milliseconds since 1970.
  public init(_ uri: OTPAuthURI, at time: Int64) {
    let kind: Kind
    var counter: UInt64 = 0
    switch uri.kind {
    case .totp(let period): kind = uri.isSteam ? .steam : .totp(period: period)
    case .hotp(let number):
      kind = .hotp
      counter = number
    }
    self.init(
      issuer: uri.issuer, account: uri.account, secret: uri.secret, kind: kind, algorithm: uri.algorithm,
      digits: kind == .steam ? 5 : uri.digits, counter: counter, at: time)
  }

  /// The URI of the entry; `nil` for an unknown kind. Notes and groups have no place in it.
  public var uri: OTPAuthURI? {
    switch kind {
    case .totp(let period):
      OTPAuthURI(
        issuer: issuer, account: account, secret: secret, kind: .totp(period: period), algorithm: algorithm,
        digits: digits)
    case .hotp:
      OTPAuthURI(
        issuer: issuer, account: account, secret: secret, kind: .hotp(counter: counter), algorithm: algorithm,
        digits: digits)
    case .steam: OTPAuthURI(issuer: issuer, account: account, secret: secret, digits: 5, isSteam: true)
    case .other: nil
    }
  }
}
