internal import ByteCoding

/// Base32 (RFC 4648 section 6), as secrets of authenticators are written.
public enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// The value of each ASCII letter and digit, in either case; -1 for other bytes.
  private static let values: [Int8] = {
    var values = [Int8](repeating: -1, count: 256)
    for (value, byte) in alphabet.enumerated() {
      values[Int(byte)] = Int8(value)
      if byte >= UInt8(ascii: "A") { values[Int(byte) | 0x20] = Int8(value) }
    }
    return values
  }()

  /// The text of `bytes`, in capitals and without padding, unless it is wanted.
  public static func encode(_ bytes: some Sequence<UInt8>, padded: Bool = false) -> String {
    var text: [UInt8] = []
    var (buffer, bits) = (UInt32(0), UInt32(0))
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> bits & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << (5 - bits) & 31)]) }
    while padded, text.count % 8 != 0 { text.append(UInt8(ascii: "=")) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of `text`, in either case, with padding or without.
  ///
  /// - Throws: `Base32Error` for anything that `encode` does not write: other characters, also spaces and padding inside;
  ///   a length that no bytes have; incomplete padding; bits after the last byte that are not 0.
  public static func decode(_ text: String) throws(Base32Error) -> [UInt8] { try decode(text, isStrict: true) }

  /// The bytes of a secret as services and people write it: with separators, with any padding at its end, and with bits
  /// after the last byte, which are dropped. Google Authenticator, Aegis and KeePassXC drop them as well.
  ///
  /// Servers read secrets with `decode(_:)`.
  ///
  /// - Throws: `Base32Error` for other characters, also padding inside, and for a length that no bytes have: there a
  ///   digit is missing, or one too many.
  public static func decodeSecret(_ text: String) throws(Base32Error) -> [UInt8] {
    try decode(withoutSeparators(text), isStrict: false)
  }

  private static func decode(_ text: String, isStrict: Bool) throws(Base32Error) -> [UInt8] {
    var digits = Array(text.utf8)
    let length = digits.count
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    if isStrict, digits.count != length, length % 8 != 0 || length - digits.count > 6 { throw .padding }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count * 5 / 8)
    var (buffer, bits) = (UInt32(0), UInt32(0))
    for digit in digits {
      guard values[Int(digit)] >= 0 else { throw .invalidCharacter(firstInvalidCharacter(in: text)) }
      buffer = buffer << 5 | UInt32(values[Int(digit)])
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
      }
    }
    guard [0, 2, 4, 5, 7].contains(digits.count % 8) else { throw .length(digits.count) }
    guard !isStrict || buffer & (1 << bits - 1) == 0 else { throw .trailingBits }
    return bytes
  }

  /// `text` as people type and paste it, without the spaces and dashes that make it readable.
  public static func withoutSeparators(_ text: String) -> String { text.filter { !TypedCode.isSeparator($0) } }

  private static func firstInvalidCharacter(in text: String) -> Character {
    text.first { character in
      character.utf8.count != 1 || values[Int(character.utf8.first ?? 0)] < 0
    } ?? "="
  }
}

/// Why a text is not Base32. No case has the text: it may be a secret.
public enum Base32Error: Error, Sendable, Hashable {
  /// A character outside the alphabet `A` to `Z` and `2` to `7`.
  case invalidCharacter(Character)
  /// Padding that does not fill the last group of eight, or is longer than any.
  case padding
  /// No number of bytes has so many digits: 1, 3 or 6 after the last group of eight.
  case length(Int)
  /// The last digit has bits that belong to no byte.
  case trailingBits
}

extension Base32Error: CustomStringConvertible {
  public var description: String {
    switch self {
    // By bytes, and only the first scalars: a character may have any number of combining marks.
    case .invalidCharacter(let character) where ["0", "1", "8", "9"].contains { character.utf8.elementsEqual($0.utf8) }:
      "Base32 has no 0, 1, 8 and 9: look for O, I or L, and B"
    case .invalidCharacter(let character):
      "Base32 has no \(String(character.unicodeScalars.prefix(8)).debugDescription)"
    case .padding: "the padding (=) is not complete"
    case .length(let count): "no secret has \(count) digits of Base32: one is missing, or one too many"
    case .trailingBits: "the last digit of the secret is wrong, or digits after it are missing"
    }
  }
}
