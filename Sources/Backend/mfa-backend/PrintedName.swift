internal import MFADomain

/// A name that a client chose, in a line of output.
enum PrintedName {
  /// Returns the name unchanged if it cannot be taken for anything else, otherwise in quotation marks, with `\u{…}` for
  /// each character that a terminal does not show.
  static func quoting(_ name: String) -> String {
    let signs = "0123456789-._@+'".unicodeScalars
    let isPlain = name.unicodeScalars.allSatisfy {
      $0.isVisible && ($0.properties.isAlphabetic || signs.contains($0))
    }
    if isPlain, !name.isEmpty { return name }
    let shown = name.unicodeScalars.map { scalar in
      switch scalar {
      case "\"", "\\": "\\\(scalar)"
      case _ where !scalar.isVisible || (scalar.properties.isWhitespace && scalar != " "):
        "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: String(scalar)
      }
    }
    return "\"\(shown.joined())\""
  }
}
