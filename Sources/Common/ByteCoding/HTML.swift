/// Markup. Interpolated text is escaped; only numbers and other `HTML` values are inserted unchanged.
public struct HTML: Sendable, ExpressibleByStringInterpolation {
  /// The markup.
  public private(set) var text: String

  /// Creates markup that a program contains.
  public init(stringLiteral literal: String) { text = literal }
  /// Creates markup with escaped texts.
  public init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

  /// Markup without text.
  public static let nothing: HTML = ""

  /// Returns `text` escaped for elements and for quoted attributes.
  public static func escaped(_ text: String) -> String {
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

  /// The parts of a literal.
  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    /// Creates an empty text.
    public init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

    /// Appends markup of the literal unchanged.
    public mutating func appendLiteral(_ literal: String) { text += literal }
    /// Appends a text, escaped.
    public mutating func appendInterpolation(_ text: String) { self.text += HTML.escaped(text) }
    /// Appends a number.
    public mutating func appendInterpolation(_ number: some BinaryInteger) { text += "\(number)" }
    /// Appends markup.
    public mutating func appendInterpolation(_ markup: HTML) { text += markup.text }
    /// Appends several pieces of markup.
    public mutating func appendInterpolation(_ markups: [HTML]) { for markup in markups { text += markup.text } }
  }
}
