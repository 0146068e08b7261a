/// A `.env` file: lines `NAME=value`, as shells and container tools write them.
///
/// The parser accepts `export` before a name and blanks around `=`. A value may be in single quotes, which are
/// literal, or in double quotes, with the escapes `\n`, `\t`, `\"`, `\\` and `\$`. Quoted values may span several
/// lines. A `#` after a blank starts a comment. Variables are not expanded.
struct DotEnv {
  struct Variable: Sendable, Hashable {
    let value: String
    let line: Int
  }

  private(set) var variables: [String: Variable] = [:]
  private(set) var faults: [ConfigurationError] = []

  init(text: String) {
    // Some editors write a byte order mark at the start.
    let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    var index = 0
    while index < lines.count { index += take(lines[index...], number: index + 1) }
  }

  /// Parses the variable that starts on the first of `lines`. Returns the number of lines consumed.
  private mutating func take(_ lines: ArraySlice<Substring>, number: Int) -> Int {
    var rest = (lines.first ?? "").drop(while: Self.isBlank)
    guard let first = rest.first, first != "#" else { return 1 }
    if rest.hasPrefix("export"), let next = rest.dropFirst(6).first, Self.isBlank(next) {
      rest = rest.dropFirst(6).drop(while: Self.isBlank)
    }
    let name = String(rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
    rest = rest.dropFirst(name.count).drop(while: Self.isBlank)
    guard !name.isEmpty, name.first?.isNumber == false, rest.first == "=" else {
      refuse(nil, "expected NAME=value", line: number)
      return 1
    }
    let beginning = rest.dropFirst().drop(while: Self.isBlank)
    var count = 1
    var value = Self.value(of: beginning)
    // The limit is more than any value needs. It avoids rescanning the rest of the file for every unclosed quote.
    while value == .open, count < min(lines.count, 100) {
      count += 1
      value = Self.value(of: Substring(([beginning] + lines.prefix(count).dropFirst()).joined(separator: "\n")))
    }
    guard case .text(let text) = value else {
      refuse(name, "the quotes are not closed, or text follows them", line: number)
      return 1
    }
    if let earlier = variables[name] {
      refuse(name, "set twice, first in line \(earlier.line)", line: number)
    } else {
      variables[name] = Variable(value: text, line: number)
    }
    return count
  }

  private mutating func refuse(_ name: String?, _ reason: String, line: Int) {
    faults.append(ConfigurationError(.dotenv(line: line, variable: name ?? ""), name, reason))
  }

  private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

  private enum Value: Equatable {
    case text(String)
    /// The closing quote is missing.
    case open
    /// Text follows the closing quote.
    case malformed
  }

  private static func value(of text: Substring) -> Value {
    guard let quote = text.first, quote == "\"" || quote == "'" else { return .text(unquoted(text)) }
    var value = ""
    var rest = text.dropFirst()
    while let character = rest.popFirst() {
      if character == quote {
        let behind = rest.drop(while: isBlank)
        return behind.isEmpty || behind.first == "#" && behind.count < rest.count ? .text(value) : .malformed
      }
      if character == "\\", quote == "\"", let next = rest.popFirst() {
        value += escapes[next].map(String.init) ?? "\\\(next)"
      } else {
        value.append(character)
      }
    }
    return .open
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

extension DotEnv {
  /// Why the file at `place` is not used; `nil` if it is. It must belong to this user, to root, or to the user who runs
  /// this command by sudo, and not every user may write it: in a folder like `/tmp` it could be anyone's.
  ///
  /// - Parameter link: The owner of the symbolic link at `place`, which chooses the file; `nil` if there is none.
  static func fault(
    at place: String, ofOwner owner: UInt32, throughLinkOf link: UInt32? = nil, _ permissions: UInt32,
    by user: UInt32 = FileContent.user, _ environment: [String: String]
  ) -> ConfigurationError? {
    let sudoer = environment["SUDO_UID"].flatMap { UInt32($0) }
    let others: [UInt32] = [owner, link ?? owner].filter { ![user, 0].contains($0) && !(user == 0 && $0 == sudoer) }
    if let other = others.first {
      return ConfigurationError(
        .dotenv(line: 1, variable: ""), nil,
        "\(place) belongs to another user (\(other)), who could choose any setting by it",
        hint: "run the command in another folder, set the variables in the environment, or let root run "
          + "chown -h \(user) .env")
    }
    guard permissions & 0o002 == 0 else {
      return ConfigurationError(
        .dotenv(line: 1, variable: ""), nil,
        "every user of this machine can write \(place), and choose any setting by it",
        hint: "run chmod o-w .env, or set the variables in the environment")
    }
    return nil
  }
}
