/// Markup. What is put into it as text is escaped; only other markup and numbers go in as they are.
struct HTML: Sendable, ExpressibleByStringInterpolation {
  private(set) var text: String

  init(stringLiteral literal: String) { text = literal }
  init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

  static let nothing: HTML = ""

  /// `text` as it may stand in an element and in an attribute in quotation marks.
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
