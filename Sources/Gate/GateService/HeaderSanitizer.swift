internal import Transport

/// Which of a client's header fields an upstream gets to see.
///
/// An upstream believes what the gate tells it about a client, so no client may say the same words. A name with an
/// underscore goes too, and one with any other character than letters, digits and dashes: where names become variables
/// (CGI, WSGI), servers take one for the other.
struct HeaderSanitizer: Sendable {
  private static let prefixes = [
    "x-attest-", "x-app-", "x-ssl-", "x-client-", "ssl-", "client-cert", "x-forwarded", "x-original-", "x-rewrite-",
    "x-remote-", "remote-", "x-auth-", "x-authenticated-",
    // The fields in which other gates state an identity. A server that once stood behind one may still believe them.
    "x-authentik-", "x-pomerium-", "x-vouch-", "x-webauth-", "x-amzn-oidc-", "x-goog-authenticated-", "x-goog-iap-",
    "x-ms-client-principal", "x-ms-token-", "cf-access-", "tailscale-",
  ]
  private static let names: Set<String> = [
    "forwarded", "x-real-ip", "true-client-ip", "x-request-id", "traceparent",
    // The same for the client's address.
    "cf-connecting-ip", "cf-connecting-ipv6", "fastly-client-ip", "x-cluster-client-ip", "x-envoy-external-address",
    // To CGI it is the variable HTTP_PROXY, and many libraries send their own requests where that says ("httpoxy").
    "proxy",
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

  /// Every name that is removed from each request.
  private let removed: FieldNameSet

  /// - Parameter stripHeaders: further names to remove, in any case.
  init(stripHeaders: Set<String> = []) {
    removed = FieldNameSet(
      names: Self.names.union(Self.connectionNames).union(stripHeaders), prefixes: Self.prefixes)
  }

  /// `headers` without what a client may not tell an upstream; the others keep their order, names and values.
  func cleaned(_ headers: HeaderFields) -> HeaderFields {
    let named = Self.namedByConnection(in: headers)
    return HeaderFields(headers.fields.filter { field in !isRemoved(field.name) && !named.contains(field.name) })
  }

  /// Whether no upstream gets to see a field of this name, or whether its form is one that an upstream could take for
  /// the gate's word.
  private func isRemoved(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { name in !name.allSatisfy(Self.isPlain) || removed.contains(name) }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  /// What a client wants to be removed; of an honest upgrade nothing remains, since `Upgrade` is removed anyway.
  private static func namedByConnection(in headers: HeaderFields) -> NamedFields {
    let values = headers.values(of: "Connection")
    if values.allSatisfy({ HeaderFields.isSame($0, "Upgrade") }) { return NamedFields(names: []) }
    return NamedFields(names: options(of: headers).subtracting(handshakeNames))
  }

  private struct NamedFields {
    /// In lowercase.
    let names: Set<String>
    func contains(_ name: String) -> Bool { !names.isEmpty && names.contains(name.lowercased()) }
  }

  /// The names that `Connection` fields list.
  private static func options(of headers: HeaderFields) -> Set<String> {
    let options = headers.values(of: "Connection").flatMap { $0.split(separator: ",") }
    return Set(options.map { String($0.trimmingSpaces()).lowercased() })
  }
}

extension HeaderSanitizer {
  /// Cleans an upstream's own refusal for the client: removes the fields that only the gate sets and those that the
  /// engine writes.
  ///
  /// - Parameter keepsDate: whether the answer is passed on with the upstream's date, and not written by the gate.
  static func cleaned(fromUpstream headers: HeaderFields, keepsDate: Bool = false) -> HeaderFields {
    let named = options(of: headers)
    return HeaderFields(
      headers.fields.filter { field in
        let name = field.name.lowercased()
        return
          !(named.contains(name) || connectionNames.contains(name) || isGates(name)
          || (name == "date" && !keepsDate))
      })
  }
}

extension HeaderSanitizer {
  /// Whether `name`, in lowercase, is the gate's own to say, to readers that take an underscore for a dash, too.
  private static func isGates(_ name: String) -> Bool {
    let name = String(decoding: name.utf8.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }, as: UTF8.self)
    return name.hasPrefix("x-attest-") || name == "x-request-id"
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
