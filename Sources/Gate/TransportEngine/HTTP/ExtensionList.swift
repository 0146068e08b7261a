internal import Transport

/// The `Sec-WebSocket-Extensions` field (RFC 6455 section 9.1).
enum ExtensionList {
  /// Returns the names of the extensions in order; empty if the field is missing, `nil` if the list is malformed or has
  /// more than `HeaderFields.mostElements`.
  ///
  /// Empty elements are skipped (RFC 9110 section 5.6.1.2).
  ///
  ///     extension-list  = 1#extension
  ///     extension       = token *( ";" token [ "=" ( token | quoted-string ) ] )
  static func names(in headers: HeaderFields) -> [String]? {
    var names: [String] = []
    for value in headers.values(of: "Sec-WebSocket-Extensions") {
      var scanner = ListScanner(rest: Substring(value).utf8)
      repeat {
        guard let name = scanner.token() else {
          if scanner.isAtElementEnd { continue }
          return nil
        }
        names.append(name)
        guard names.count <= HeaderFields.mostElements else { return nil }
        while scanner.take(";") {
          guard scanner.token() != nil else { return nil }
          if scanner.take("="), scanner.token() == nil, !scanner.quotedString() { return nil }
        }
      } while scanner.take(",")
      guard scanner.rest.isEmpty else { return nil }
    }
    return names
  }
}

/// Reads the parts of a list from the front of a field value; skips white space before each part.
private struct ListScanner {
  var rest: Substring.UTF8View

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    skipWhitespace()
    guard let next = rest.first, next == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// Whether an element ends here, behind white space that was skipped.
  var isAtElementEnd: Bool { rest.isEmpty || rest.first == UInt8(ascii: ",") }

  mutating func token() -> String? {
    skipWhitespace()
    let token = rest.prefix(while: ByteSet.token.contains)
    rest = rest[token.endIndex...]
    skipWhitespace()
    return token.isEmpty ? nil : String(Substring(token))
  }

  /// Reads a quoted token: the unquoted content must be a token (RFC 6455 section 9.1).
  mutating func quotedString() -> Bool {
    guard take("\"") else { return false }
    var isEmpty = true
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return !isEmpty }
      let character = byte == UInt8(ascii: "\\") ? rest.popFirst() : byte
      guard let character, ByteSet.token.contains(character) else { return false }
      isEmpty = false
    }
    return false
  }

  private mutating func skipWhitespace() {
    rest = rest.drop { $0 == .space || $0 == .tab }
  }
}
