public import ByteCoding
internal import Crypto
internal import Foundation

extension TOTPParameters {
  /// The step of `instant` (RFC 6238, section 4.2); 0 before the epoch.
  public func step(at instant: Timestamp) -> Int64 { max(0, instant.seconds) / Int64(period) }

  /// The code of `step`, with its leading zeros (RFC 4226, section 5.3).
  public func code(_ secret: [UInt8], step: Int64) -> String {
    let counter = withUnsafeBytes(of: step.bigEndian) { Array($0) }
    let mac = authenticate(counter, with: SymmetricKey(data: secret))
    let offset = Int(mac[mac.count - 1] & 0x0F)
    // The shortest of the three MACs has 20 bytes, and offset + 3 is at most 18.
    let number = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    let digits = String(number % (0..<self.digits).reduce(UInt32(1)) { power, _ in power * 10 })
    return String(repeating: "0", count: self.digits - digits.count) + digits
  }

  /// Returns the step whose code is `guess`: that of `instant`, or one to either side, but none up to `lastStep`.
  ///
  /// All three are always compared, so that the time does not reveal the step.
  func matchingStep(_ guess: String, _ secret: [UInt8], at instant: Timestamp, after lastStep: Int64) -> Int64? {
    let current = step(at: instant)
    var found: Int64?
    for candidate in max(0, current - 1)...current + 1 {
      let isEqual = constantTimeEqual(Array(code(secret, step: candidate).utf8), Array(guess.utf8))
      if isEqual, candidate > lastStep { found = candidate }
    }
    return found
  }

  /// How many bytes a secret has: as many as the hash, which is 160 bits at least.
  public var secretLength: Int {
    switch algorithm {
    case .sha1: 20
    case .sha256: 32
    case .sha512: 64
    }
  }

  private func authenticate(_ message: [UInt8], with key: SymmetricKey) -> [UInt8] {
    switch algorithm {
    case .sha1: Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
    case .sha256: Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
    case .sha512: Array(HMAC<SHA512>.authenticationCode(for: message, using: key))
    }
  }
}

/// Base32 without padding (RFC 4648, section 6), as authenticator apps take their secrets.
public enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  public static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> UInt32(bits) & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }
}
