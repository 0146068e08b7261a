internal import Transport

extension HeaderFields {
  /// Returns the tokens of a comma-separated list over all fields called `name` (RFC 9110
  /// section 5.6.1), case preserved.
  ///
  /// Empty elements are skipped. Returns `nil` if an element is not a token, or if there are more than `mostElements`.
  func tokens(of name: FieldName) -> [String]? {
    var tokens: [String] = []
    for value in values(of: name) {
      var rest = value.utf8[...]
      while !rest.isEmpty {
        let element = rest.prefix { $0 != UInt8(ascii: ",") }
        rest = rest[element.endIndex...].dropFirst()
        let token = element.trimmingWhitespace()
        if token.isEmpty { continue }
        guard tokens.count < Self.mostElements, token.allSatisfy(ByteSet.token.contains) else { return nil }
        tokens.append(String(Substring(token)))
      }
    }
    return tokens
  }

  /// Far more than a list of options or subprotocols has. Each element costs as much as a whole ordinary field.
  static let mostElements = 64

  /// Returns the options of `Connection` (RFC 9110 section 7.6.1), in lowercase.
  func connectionOptions() throws(HeadError) -> [String] {
    // What most clients and servers send with a handshake.
    if isOnly("Connection", "upgrade") { return Self.upgradeAlone }
    guard let tokens = tokens(of: "Connection") else { throw .connectionSyntax }
    return tokens.map { $0.lowercased() }
  }

  private static let upgradeAlone = ["upgrade"]

  /// Returns the declared framing of the body.
  ///
  /// RFC 9112 section 6.3 allows a recipient to repair some of what is refused here. Another recipient
  /// could repair it differently.
  func declaredFraming() throws(HeadError) -> (contentLength: Int?, isChunked: Bool) {
    let contentLength = try contentLength()
    switch only("Transfer-Encoding") {
    case .absent: return (contentLength, false)
    case .once(let value) where HeaderFields.isSame(value, "chunked"): break
    case .once, .repeated: throw .transferEncoding
    }
    if contentLength != nil { throw .doubleFraming }
    return (nil, true)
  }

  private func contentLength() throws(HeadError) -> Int? {
    switch only("Content-Length") {
    case .absent: return nil
    case .repeated: throw .contentLengthRepeated
    case .once(let value):
      // `Int` would accept a sign.
      guard value.utf8.allSatisfy(\.isDigit), let length = Int(value) else { throw .contentLengthSyntax }
      return length
    }
  }

  /// Checks that the `Host` field names the host of an absolute request target. A reader that follows RFC 9112 section
  /// 3.2.2 ignores `Host`, others ignore the target.
  func requireHost(sameAs authority: UnsafeBufferPointer<UInt8>) throws(HeadError) {
    guard withOnly("Host", { Authority.isSame(authority, $0) }) == true else { throw .hostDiffers }
  }

  /// Checks that there is one `Host` field with a host (RFC 9112 section 3.2).
  func requireHost() throws(HeadError) {
    guard let isValid = withOnly("Host", Authority.isValid) else {
      throw contains("Host") ? .hostRepeated : .hostMissing
    }
    if !isValid { throw .hostSyntax }
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
