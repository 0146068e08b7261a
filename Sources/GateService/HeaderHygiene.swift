internal import Transport

/// Which of a client's header fields an upstream gets to see.
///
/// An upstream believes what the gate tells it about a client, so no client may say the same words. A name with an
/// underscore goes too, and one with any other character than letters, digits and dashes: where names become variables
/// (CGI, WSGI), servers take one for the other.
struct HeaderHygiene: Sendable {
  private static let prefixes = [
    "x-attest-", "x-app-", "x-ssl-", "x-client-", "ssl-", "client-cert", "x-forwarded-", "x-original-", "x-rewrite-",
    "x-remote-", "remote-", "x-auth-", "x-authenticated-",
  ]
  private static let names: Set<String> = [
    "forwarded", "x-real-ip", "true-client-ip", "x-request-id", "traceparent",
    // Continues a traceparent, and means nothing without its own.
    "tracestate",
  ]
  /// What concerns one connection only (RFC 9110 section 7.6.1), and the frame of a body that an upgrade does not have.
  private static let connectionNames: Set<String> = [
    "connection", "upgrade", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te",
    "trailer", "transfer-encoding", "content-length", "expect", "http2-settings",
  ]
  /// Without these there is no opening handshake, so no `Connection` field removes them.
  private static let handshakeNames: Set<String> = ["host", "sec-websocket-key", "sec-websocket-version"]

  private static let prefixesByInitial = Dictionary(grouping: prefixes) { $0.utf8.first }

  /// Every name that is removed from each request.
  private let removed: Set<String>

  /// - Parameter stripHeaders: further names to remove, in any case.
  init(stripHeaders: Set<String> = []) {
    removed = Self.names.union(Self.connectionNames).union(stripHeaders.map { $0.lowercased() })
  }

  /// `headers` without what a client may not tell an upstream; the others keep their order, names and values.
  func cleaned(_ headers: HeaderFields) -> HeaderFields {
    // Of an honest upgrade nothing remains: its `Connection` names `Upgrade`, which is removed anyway.
    let named = Self.options(of: headers).subtracting(Self.handshakeNames).subtracting(removed)
    return HeaderFields(headers.fields.filter { !isRemoved($0.name.lowercased(), named: named) })
  }

  private func isRemoved(_ name: String, named: Set<String>) -> Bool {
    removed.contains(name) || Self.hasIdentityForm(name) || (!named.isEmpty && named.contains(name))
  }

  /// Whether the form of this lowercase name is one that an upstream could take for the gate's word.
  private static func hasIdentityForm(_ name: String) -> Bool {
    !name.utf8.allSatisfy(isPlain)
      || prefixesByInitial[name.utf8.first]?.contains { name.hasPrefix($0) } == true
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || byte == UInt8(ascii: "-")
  }

  /// The names that `Connection` fields list.
  private static func options(of headers: HeaderFields) -> Set<String> {
    let options = headers.values(of: "Connection").flatMap { $0.split(separator: ",") }
    return Set(options.map { String($0.trimmingSpaces()).lowercased() })
  }
}

extension HeaderHygiene {
  /// An upstream's own refusal, as the client may see it: without what only the gate says, and without what the engine
  /// writes itself.
  ///
  /// - Parameter keepsDate: whether the answer is the upstream's own, date and all, and not written anew.
  static func cleaned(fromUpstream headers: HeaderFields, keepsDate: Bool = false) -> HeaderFields {
    let named = options(of: headers)
    return HeaderFields(
      headers.fields.filter { field in
        let name = field.name.lowercased()
        return
          !(named.contains(name) || connectionNames.contains(name) || name.hasPrefix("x-attest-")
          || name.hasPrefix("x_attest") || name == "x-request-id" || (name == "date" && !keepsDate))
      })
  }
}

extension StringProtocol {
  /// Without the spaces and tabs at both ends.
  func trimmingSpaces() -> SubSequence {
    func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
    let front = drop(while: isSpace)
    return front[..<(front.lastIndex { !isSpace($0) }.map(front.index(after:)) ?? front.startIndex)]
  }
}
