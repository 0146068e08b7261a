/// Codes and secrets as people type and paste them.
public enum TypedCode {
  private static let marks: Set<Character> = [
    "-", "\u{AD}", "\u{200B}", "\u{2010}", "\u{2011}", "\u{2012}", "\u{2013}", "\u{2014}", "\u{2212}", "\u{FEFF}",
  ]

  /// Whether a character only makes a secret or a code readable: white space of any kind, also line ends, no-break and
  /// zero-width spaces; dashes, also soft ones.
  public static func isSeparator(_ character: Character) -> Bool {
    // A hash takes time with the square of the number of combining marks in a character.
    character.isWhitespace || character.unicodeScalars.dropFirst().isEmpty && marks.contains(character)
  }

  /// `text` without separators, and with full-width digits and letters, as keyboards of East Asia have them, in their
  /// usual form. Case is kept.
  public static func plain(_ text: some StringProtocol) -> String {
    var plain = String.UnicodeScalarView()
    // The full-width forms of ASCII. The dash among them separates, as the usual one does.
    for scalar in text.unicodeScalars {
      let isWide = (0xFF01...0xFF5E).contains(scalar.value)
      plain.append(isWide ? Unicode.Scalar(UInt8(scalar.value - 0xFEE0)) : scalar)
    }
    return String(plain).filter { !isSeparator($0) }
  }
}
