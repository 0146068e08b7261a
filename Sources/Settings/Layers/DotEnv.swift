/// A `.env` file: lines `NAME=value`, as shells and container tools write them.
///
/// `export` may stand before a name, blanks around `=`; a value may stand in single quotes (taken as it is) or in double
/// quotes (`\n`, `\t`, `\"`, `\\` and `\$` are read). Behind an unquoted or quoted value a `#` after a blank begins a
/// comment. Nothing is expanded.
struct DotEnv {
  struct Variable: Sendable, Hashable {
    let value: String
    let line: Int
  }

  private(set) var variables: [String: Variable] = [:]
  private(set) var faults: [Fault] = []

  init(text: String) {
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() { take(line, number: index + 1) }
  }

  private mutating func take(_ line: Substring, number: Int) {
    var rest = line.drop(while: Self.isBlank)
    guard let first = rest.first, first != "#" else { return }
    if rest.hasPrefix("export"), let next = rest.dropFirst(6).first, Self.isBlank(next) {
      rest = rest.dropFirst(6).drop(while: Self.isBlank)
    }
    let name = String(rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
    rest = rest.dropFirst(name.count).drop(while: Self.isBlank)
    guard !name.isEmpty, name.first?.isNumber == false, rest.first == "=" else {
      return refuse(nil, "not of the form NAME=value", line: number)
    }
    guard let value = Self.value(of: rest.dropFirst().drop(while: Self.isBlank)) else {
      return refuse(name, "the quotes do not end, or something stands behind them", line: number)
    }
    if let earlier = variables[name] {
      return refuse(name, "given twice, first in line \(earlier.line)", line: number)
    }
    variables[name] = Variable(value: value, line: number)
  }

  private mutating func refuse(_ name: String?, _ reason: String, line: Int) {
    faults.append(Fault(.dotenv(line: line, variable: name ?? ""), name, reason))
  }

  private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

  /// The value that `text` begins with; `nil` if its quotes are wrong.
  private static func value(of text: Substring) -> String? {
    guard let quote = text.first, quote == "\"" || quote == "'" else { return unquoted(text) }
    var value = ""
    var rest = text.dropFirst()
    while let character = rest.popFirst() {
      if character == quote {
        let behind = rest.drop(while: isBlank)
        return behind.isEmpty || behind.first == "#" && behind.count < rest.count ? value : nil
      }
      if character == "\\", quote == "\"", let next = rest.popFirst() {
        value += escapes[next].map(String.init) ?? "\\\(next)"
      } else {
        value.append(character)
      }
    }
    return nil
  }

  private static let escapes: [Character: Character] = ["n": "\n", "t": "\t", "\"": "\"", "\\": "\\", "$": "$"]

  private static func unquoted(_ text: Substring) -> String {
    if text.first == "#" { return "" }
    var end = text.startIndex
    var isBehindBlank = false
    for index in text.indices {
      if text[index] == "#", isBehindBlank { break }
      isBehindBlank = isBlank(text[index])
      if !isBehindBlank { end = text.index(after: index) }
    }
    return String(text[..<end])
  }
}
