internal import Transport

extension HeaderFields {
  /// The tokens of a comma-separated list, all fields called `name` together (RFC 9110 section 5.6.1), case kept.
  ///
  /// Empty elements do not count. `nil` if something else than tokens is in the list.
  func tokens(of name: String) -> [String]? {
    var tokens: [String] = []
    for value in values(of: name) {
      for element in value.utf8.split(separator: UInt8(ascii: ",")) {
        let token = element.trimmingWhitespace()
        if token.isEmpty { continue }
        guard token.allSatisfy(ByteSet.token.contains) else { return nil }
        tokens.append(String(Substring(token)))
      }
    }
    return tokens
  }

  /// The options of `Connection` (RFC 9110 section 7.6.1), in lowercase.
  func connectionOptions() throws(HeadFault) -> [String] {
    guard let tokens = tokens(of: "Connection") else { throw .connectionSyntax }
    return tokens.map { $0.lowercased() }
  }

  /// What frames the body, as the sender declared it.
  ///
  /// RFC 9112 section 6.3 lets a recipient repair some of what is refused here; whatever needs repair could be read
  /// differently by the next recipient.
  func declaredFraming() throws(HeadFault) -> (contentLength: Int?, isChunked: Bool) {
    let contentLength = try contentLength()
    switch only("Transfer-Encoding") {
    case .absent: return (contentLength, false)
    case .once(let value) where HeaderFields.isSame(value, "chunked"): break
    case .once, .repeated: throw .transferEncoding
    }
    if contentLength != nil { throw .doubleFraming }
    return (nil, true)
  }

  private func contentLength() throws(HeadFault) -> Int? {
    switch only("Content-Length") {
    case .absent: return nil
    case .repeated: throw .contentLengthRepeated
    case .once(let value):
      // `Int` would take a sign.
      guard value.utf8.allSatisfy(\.isDigit), let length = Int(value) else { throw .contentLengthSyntax }
      return length
    }
  }

  /// The only `Host` field (RFC 9112 section 3.2).
  func host() throws(HeadFault) -> String {
    switch only("Host") {
    case .absent: throw .hostMissing
    case .repeated: throw .hostRepeated
    case .once(let value):
      guard Authority.isValid(value) else { throw .hostSyntax }
      return value
    }
  }
}

extension Substring.UTF8View {
  func trimmingWhitespace() -> Substring.UTF8View {
    var rest = self
    while let first = rest.first, first == .space || first == .tab { rest.removeFirst() }
    while let last = rest.last, last == .space || last == .tab { rest.removeLast() }
    return rest
  }
}
