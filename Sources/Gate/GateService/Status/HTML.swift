/// Markup. Interpolated text is escaped; only numbers and other `HTML` values are inserted unchanged.
struct HTML: Sendable, ExpressibleByStringInterpolation {
  private(set) var text: String

  init(stringLiteral literal: String) { text = literal }
  init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

  static let nothing: HTML = ""

  /// Returns `text` escaped for elements and for quoted attributes.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    mutating func appendLiteral(_ literal: String) { text += literal }
    mutating func appendInterpolation(_ text: String) { self.text += HTML.escaped(text) }
    mutating func appendInterpolation(_ number: some BinaryInteger) { text += "\(number)" }
    mutating func appendInterpolation(_ markup: HTML) { text += markup.text }
    mutating func appendInterpolation(_ markups: [HTML]) { for markup in markups { text += markup.text } }
  }
}
