internal import ByteCoding

/// A backup code for paper: eight characters, at least one of them a letter, so that it cannot be confused with a
/// code of digits.
enum BackupCode {
  static let count = 10
  static let length = 8
  /// Without characters that look alike: 0 and O, 1, I and L.
  private static let alphabet = Array("ABCDEFGHJKMNPQRSTUVWXYZ23456789")

  /// Ten different codes.
  static func makeAll(_ entropy: Entropy) -> [String] {
    var codes: [String] = []
    while codes.count < count {
      let code = make(entropy)
      if !codes.contains(code) { codes.append(code) }
    }
    return codes
  }

  /// The code that always results from `draw`, which returns 32 unpredictable bytes for each number from 0 on.
  static func derive(_ draw: (_ round: Int) -> [UInt8]) -> String {
    // A byte beyond the last multiple would make some characters likelier than others.
    let bound = 256 / alphabet.count * alphabet.count
    var round = 0
    while true {
      let bytes = draw(round).filter { Int($0) < bound }.prefix(length)
      let code = String(bytes.map { alphabet[Int($0) % alphabet.count] })
      if code.count == length, code.contains(where: \.isLetter) { return code }
      round += 1
    }
  }

  /// One such code.
  static func make(_ entropy: Entropy) -> String {
    while true {
      let code = String((0..<length).map { _ in alphabet[Int(entropy.number(below: UInt64(alphabet.count)))] })
      if code.contains(where: \.isLetter) { return code }
    }
  }
}

/// A code as a user types or pastes it: without the separators that help reading, in capitals, and with full-width digits
/// and letters, as keyboards of East Asia have them, in their usual form.
public struct CodeGuess: Sendable, Hashable {
  public let text: String

  public init(_ text: String) throws(InvalidValue) {
    let plain = text.utf8.count <= Self.longest ? TypedCode.plain(text).uppercased() : ""
    guard (1...32).contains(plain.utf8.count) else {
      throw InvalidValue(field: "code", rule: "has 1 to 32 characters")
    }
    self.text = plain
  }

  /// The most bytes of a code as it is typed: full-width characters have three.
  public static let longest = 128

  var isDigits: Bool { text.utf8.allSatisfy { (0x30...0x39).contains($0) } }
  var mayBeBackupCode: Bool { text.utf8.count == BackupCode.length && !isDigits }
}
