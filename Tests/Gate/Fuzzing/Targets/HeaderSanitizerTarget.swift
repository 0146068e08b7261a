import Transport

@testable import GateService
@testable import TransportEngine

extension FuzzTarget {
  static let headerSanitizer = FuzzTarget(
    name: "header-sanitizer", longest: 2048, words: HTTPWords.all + HeaderSanitizerInvariants.words,
    seeds: { HeaderSanitizerInvariants.seeds.map { Array($0.utf8) } }, accepts: HeaderSanitizerInvariants.check)
}

/// No upstream receives a field of the gate from a client, and no client receives one from an upstream.
enum HeaderSanitizerInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard case .head(let head, _) = RequestHeadInvariants.parse(input) else { return false }
    let cleaned = try kept(of: head.headers)
    for field in cleaned.fields {
      try require(head.headers.fields.contains(field), "a remaining field was in the request", field.name)
      try require(!isReserved(field.name), "no client sets a field of the gate", field.name)
    }
    let named = Set(head.connectionOptions).subtracting(["host", "sec-websocket-key", "sec-websocket-version"])
    try require(
      !cleaned.fields.contains { named.contains($0.name.lowercased()) }, "fields that Connection names are removed")
    try require(try kept(of: cleaned) == cleaned, "cleaning twice changes nothing")
    let answer = HeaderSanitizer.cleaned(fromUpstream: head.headers)
    try require(!answer.fields.contains { isGateField($0.name) }, "no upstream sets a field of the gate")
    if head.headers.only("Origin") == .repeated { try require(CrossSiteRule.isForeign(in: head.headers), "one Origin") }
    _ = (CrossSiteRule.isForeign(in: head.headers), Accept.namesJSON(in: head.headers))
    return true
  }

  private static let sanitizer = HeaderSanitizer(stripHeaders: ["X-Own"])

  private static func kept(of headers: HeaderFields) throws(InvariantViolation) -> HeaderFields {
    var head = Array("HTTP/1.1 200 \r\n".utf8)
    sanitizer.forEachKept(in: headers) { head += $0 }
    head += "\r\n".utf8
    guard case .head(let kept, head.count) = head.withUnsafeBufferPointer({ ResponseHead.parse($0) }) else {
      throw InvariantViolation(invariant: "the remaining lines are a head", detail: "")
    }
    return kept.headers
  }

  /// Compares like servers that turn names into variables: case-insensitive, with dash equal to underscore.
  private static func isReserved(_ name: String) -> Bool {
    let name = String(name.lowercased().map { $0 == "_" ? "-" : $0 })
    return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
  }

  private static func isGateField(_ name: String) -> Bool {
    let name = String(name.lowercased().map { $0 == "_" ? "-" : $0 })
    return name.hasPrefix("x-attest-")
  }

  // The list of the documents, independent of the list in the code.
  private static let prefixes = [
    "x-attest-", "x-app-", "x-ssl-", "x-client-", "ssl-", "client-cert", "x-forwarded", "x-original-", "x-rewrite-",
    "x-remote-", "remote-", "x-auth-", "x-authenticated-", "x-authentik-", "x-pomerium-", "x-vouch-", "x-webauth-",
    "x-amzn-oidc-", "x-goog-authenticated-", "x-goog-iap-", "x-ms-client-principal", "x-ms-token-", "cf-access-",
    "tailscale-",
  ]
  private static let names: Set = [
    "forwarded", "x-real-ip", "true-client-ip", "x-request-id", "traceparent", "x-own", "connection",
    "proxy", "cf-connecting-ip", "cf-connecting-ipv6", "fastly-client-ip", "x-cluster-client-ip",
    "x-envoy-external-address",
    "transfer-encoding", "content-length", "upgrade", "te", "trailer", "keep-alive", "proxy-connection",
    "proxy-authenticate", "proxy-authorization", "expect", "http2-settings", "tracestate",
  ]

  static let words =
    prefixes + ["X_Attest-", "X-Attest_", "Origin", "https://a", "Accept", "application/json;q=0", "X-Real-IP"]

  static let seeds = [
    "GET / HTTP/1.1\r\nHost: a\r\nX-Attest-App: me\r\nX_ATTEST_APP: me\r\nX-Forwarded-For: 1\r\nCookie: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\nAccept: text/html, application/json;q=0.5\r\nX-Own: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, X-Custom, Host\r\nX-Custom: 1\r\nUpgrade: websocket\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX-Attest_App: me\r\nx-attest-app: me\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: [::1]:1\r\nOrigin: https://[::1]\r\nRemote-User: root\r\nremote_user: root\r\n\r\n",
  ]
}
