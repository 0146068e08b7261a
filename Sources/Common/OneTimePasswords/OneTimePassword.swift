public import Foundation

/// How codes are computed from a secret: HOTP (RFC 4226), of which TOTP (RFC 6238) is the one whose counter is the time.
public struct OneTimePassword: Sendable, Hashable {
  /// How a number becomes a code.
  public enum Format: Sendable, Hashable {
    /// Decimal digits with leading zeros, 5 to 10. Most services have 6 to 8.
    case digits(Int)
    /// Five characters of Steam's alphabet, without letters that look alike.
    case steam
  }

  /// The hash function.
  public let algorithm: TOTPAlgorithm
  /// How a number becomes a code.
  public let format: Format

  /// Codes with `digits` digits.
  ///
  /// - Throws: `.digits` unless there are 5 to 10.
  public init(algorithm: TOTPAlgorithm = .sha1, digits: Int = 6) throws(OTPError) {
    guard (5...10).contains(digits) else { throw .digits(digits) }
    self.algorithm = algorithm
    format = .digits(digits)
  }

  private init(_ format: Format) { (algorithm, self.format) = (.sha1, format) }

  /// What authenticator apps assume: SHA-1 and six digits.
  public static let standard = OneTimePassword(.digits(6))
  /// Codes of Steam: SHA-1, and a step of 30 seconds.
  public static let steam = OneTimePassword(.steam)

  /// The code of `counter` (RFC 4226 section 5.3), with its leading zeros.
  public func code(secret: [UInt8], counter: UInt64) -> String {
    let message = withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    let hash = algorithm.authenticationCode(for: message, key: secret)
    let offset = Int(hash[hash.count - 1] & 0x0F)
    // The shortest hash has 20 bytes, and offset + 3 is at most 18.
    let number = hash[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    switch format {
    case .digits(let count): return Self.decimal(number, digits: count)
    case .steam: return Self.steamText(number)
    }
  }

  /// The step of `time` (RFC 6238 section 4.2).
  ///
  /// - Throws: `.period` unless it has 1 to 300 seconds; `.time` before 1970 and beyond the year 9999.
  public static func step(at time: Date, period: Int) throws(OTPError) -> UInt64 {
    guard (1...300).contains(period) else { throw .period(period) }
    let seconds = time.timeIntervalSince1970.rounded(.down)
    guard (0..<253_402_300_800).contains(seconds) else { throw .time }
    return UInt64(seconds) / UInt64(period)
  }

  private static func decimal(_ number: UInt32, digits count: Int) -> String {
    var rest = UInt64(number)
    var text = [UInt8](repeating: UInt8(ascii: "0"), count: count)
    for place in text.indices.reversed() {
      text[place] += UInt8(rest % 10)
      rest /= 10
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static let steamAlphabet = Array("23456789BCDFGHJKMNPQRTVWXY".utf8)

  private static func steamText(_ number: UInt32) -> String {
    var rest = Int(number)
    let text = (0..<5).map { _ -> UInt8 in
      defer { rest /= steamAlphabet.count }
      return steamAlphabet[rest % steamAlphabet.count]
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Returns the code of `secret` at `time` (RFC 6238).
///
/// - Parameters:
///   - digits: 5 to 10.
///   - period: The seconds of a step, 1 to 300.
/// - Throws: `OTPError` for a value outside its bounds.
public func generateTOTP(
  secret: Data, time: Date, digits: Int = 6, period: Int = 30, algorithm: TOTPAlgorithm = .sha1
) throws(OTPError) -> String {
  let password = try OneTimePassword(algorithm: algorithm, digits: digits)
  return password.code(secret: Array(secret), counter: try OneTimePassword.step(at: time, period: period))
}

/// Why no code can be computed.
public enum OTPError: Error, Sendable, Hashable {
  /// A code has 5 to 10 digits.
  case digits(Int)
  /// A step has 1 to 300 seconds.
  case period(Int)
  /// The time is before 1970 or beyond the year 9999.
  case time
}

extension OTPError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .digits(let count): "a code has 5 to 10 digits, not \(count)"
    case .period(let seconds): "a step has 1 to 300 seconds, not \(seconds)"
    case .time: "the time is before 1970 or beyond the year 9999"
    }
  }
}
