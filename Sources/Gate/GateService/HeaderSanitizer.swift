internal import Transport

/// Decides which of a client's header fields reach an upstream.
///
/// An upstream trusts the gate's fields about a client, so a client must not send fields of the same names. Names
/// with an underscore, or with any character other than letters, digits and hyphens, are removed too: servers that
/// turn names into variables (CGI, WSGI) confuse them with names that have hyphens.
struct HeaderSanitizer: Sendable {
  private static let prefixes = [
    "x-attest-", "x-app-", "x-ssl-", "x-client-", "ssl-", "client-cert", "x-forwarded", "x-original-", "x-rewrite-",
    "x-remote-", "remote-", "x-auth-", "x-authenticated-",
    // Identity fields of other gateways. A server that was once deployed with one may still trust them.
    "x-authentik-", "x-pomerium-", "x-vouch-", "x-webauth-", "x-amzn-oidc-", "x-goog-authenticated-", "x-goog-iap-",
    "x-ms-client-principal", "x-ms-token-", "cf-access-", "tailscale-", "x-arr-", "x-azure-", "x-tls-client-",
  ]
  private static let names: Set<String> = [
    "forwarded", "x-real-ip", "true-client-ip", "x-request-id", "traceparent",
    // Client address fields of other gateways.
    "cf-connecting-ip", "cf-connecting-ipv6", "client-ip", "do-connecting-ip", "fastly-client-ip", "fly-client-ip",
    "x-cluster-client-ip", "x-envoy-external-address", "x-originating-ip", "x-proxyuser-ip",
    // CGI turns it into the variable HTTP_PROXY, which many libraries use as their own proxy ("httpoxy").
    "proxy",
    // Belongs to the client's own `traceparent`, which the gate replaces. A gate that continues the client's trace writes
    // it again.
    "tracestate",
  ]
  /// Fields of a single connection (RFC 9110 section 7.6.1), and the framing of a body, which the engine writes
  /// itself.
  private static let connectionNames: Set<String> = [
    "connection", "upgrade", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te",
    "trailer", "transfer-encoding", "content-length", "expect", "http2-settings",
  ]
  /// An opening handshake requires these, so a `Connection` field cannot remove them.
  private static let handshakeNames: Set<String> = ["host", "sec-websocket-key", "sec-websocket-version"]

  /// All names that are removed from every request.
  private let removed: FieldNameSet
  /// Exceptions from `removed`.
  private let kept: FieldNameSet

  /// - Parameters:
  ///   - stripHeaders: Further names to remove, in any case.
  ///   - keepHeaders: Names that are not removed, in any case; none of the gate's own.
  init(stripHeaders: Set<String> = [], keepHeaders: Set<String> = []) {
    removed = FieldNameSet(
      names: Self.names.union(Self.connectionNames).union(stripHeaders), prefixes: Self.prefixes)
    kept = FieldNameSet(names: keepHeaders)
  }

  /// The names of the client's fields that `forEachKept` leaves out, without those of a connection or of a proof: what a
  /// developer may look for.
  func droppedNames(of headers: HeaderFields) -> [String] {
    let named = Self.namedByConnection(in: headers)
    return headers.fields.map(\.name).filter { name in
      let bytes = Array(name.utf8)
      return bytes.withUnsafeBufferPointer { bytes in
        (isRemoved(bytes) || named.contains(bytes)) && !Self.expected.contains(bytes)
      }
    }
  }

  /// Names that are always removed, so that a line about them would tell a developer nothing.
  private static let expected = FieldNameSet(names: connectionNames, prefixes: ["x-app-assert-"])

  /// Calls `body` with the lines of the fields that a client may send to an upstream, in their order and in as few pieces
  /// as possible.
  func forEachKept(in headers: HeaderFields, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    let named = Self.namedByConnection(in: headers)
    headers.forEachRun(where: { !isRemoved($0.name) && !named.contains($0.name) }, body)
  }

  /// Returns `true` for a name that no upstream may receive, and for one that an upstream could confuse with the
  /// gate's.
  private func isRemoved(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    !name.allSatisfy(Self.isPlain) || removed.contains(name) && !kept.contains(name)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  /// The names that the client's `Connection` field removes. For a plain `Connection: Upgrade` there are none, since
  /// `Upgrade` is removed anyway.
  private static func namedByConnection(in headers: HeaderFields) -> NamedFields {
    NamedFields(names: options(of: headers).subtracting(handshakeNames))
  }

  private struct NamedFields {
    /// In lowercase.
    let names: Set<String>
    func contains(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
      !names.isEmpty && names.contains(String(decoding: name, as: UTF8.self).lowercased())
    }
  }

  /// The names in the `Connection` fields, in lowercase; without `upgrade` if it is alone, which is removed anyway.
  private static func options(of headers: HeaderFields) -> Set<String> {
    if headers.isOnly("Connection", "Upgrade") { return [] }
    let options = headers.values(of: "Connection").flatMap { $0.split(separator: ",") }
    return Set(options.map { String($0.trimmingSpaces()).lowercased() })
  }
}

extension HeaderSanitizer {
  /// Returns the fields of an upstream's answer for the client, without the fields that only the gate sets and
  /// without those that the engine writes.
  ///
  /// - Parameter keepsDate: Whether the upstream's `Date` is kept. `false` where the engine writes a new one.
  static func cleaned(fromUpstream headers: HeaderFields, keepsDate: Bool = false) -> HeaderFields {
    let named = NamedFields(names: options(of: headers))
    return headers.filter { field in
      !answerNames.contains(field.name) && !named.contains(field.name) && (keepsDate || !field.isNamed("Date"))
    }
  }

  /// The fields of a connection, and those that only the gate sets. Many servers treat an underscore as a hyphen, so
  /// each has a form with underscores.
  private static let answerNames = {
    let gates = (name: "x-request-id", prefix: "x-attest-")
    return FieldNameSet(
      names: connectionNames.union(Self.spellings(of: gates.name)), prefixes: Self.spellings(of: gates.prefix))
  }()

  /// Returns `name` with each hyphen as it is and as an underscore.
  private static func spellings(of name: String) -> [String] {
    name.reduce([""]) { spellings, character in
      spellings.flatMap { character == "-" ? [$0 + "-", $0 + "_"] : [$0 + String(character)] }
    }
  }
}

extension StringProtocol {
  /// The text without spaces and tabs at both ends.
  func trimmingSpaces() -> SubSequence {
    func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
    let front = drop(while: isSpace)
    return front[..<(front.lastIndex { !isSpace($0) }.map(front.index(after:)) ?? front.startIndex)]
  }
}
