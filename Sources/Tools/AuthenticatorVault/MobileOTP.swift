internal import ByteCoding
internal import Crypto
internal import Foundation

/// Codes of Mobile-OTP: the first digits of the MD5 of a step of the time, the secret as text, and a PIN.
///
/// Files of Aegis and Stratum have the PIN beside the secret, and a vault keeps what they have. An entry without a PIN
/// has no code: it is a part of each.
struct MobileOTP {
  /// The name of the kind in the files.
  static let kind = VaultEntry.Kind.other("motp")
  private static let digits = 6

  private let secret: String
  private let pin: String
  /// The seconds of a step.
  let period: Int

  /// - Returns: `nil` for an entry of another kind, or without a PIN.
  init?(_ entry: VaultEntry) {
    guard entry.kind == Self.kind else { return nil }
    if case .object(let info)? = entry.otherFields["aegis"], case .string(let pin)? = info["pin"] {
      // Aegis has the secret's bytes, and the code is made of their hexadecimal digits.
      secret = Hex.encode(entry.secret)
      self.pin = pin
      period = if case .integer(let seconds)? = info["period"], (1...300).contains(seconds) { Int(seconds) } else { 10 }
    } else if case .object(let kept)? = entry.otherFields["stratum"], case .string(let pin)? = kept["Pin"] {
      // Stratum has the text itself.
      secret = String(decoding: entry.secret, as: UTF8.self)
      self.pin = pin
      period = 10
    } else {
      return nil
    }
  }

  func code(step: UInt64) -> String {
    let digest = Insecure.MD5.hash(data: Data("\(step)\(secret)\(pin)".utf8))
    return String(Hex.encode(Array(digest)).prefix(Self.digits))
  }
}
