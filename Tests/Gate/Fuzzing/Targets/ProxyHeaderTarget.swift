import Transport

@testable import TransportEngine

extension FuzzTarget {
  /// The first byte selects the allowed versions.
  static let proxyHeader = FuzzTarget(
    name: "proxy-header", longest: 512,
    words: ["PROXY ", "TCP4 ", "TCP6 ", "UNKNOWN", "\r\n", "192.0.2.7 ", "::1 ", "\r\n\r\n\u{0}\r\nQUIT\n"],
    seeds: { ProxyHeaderInvariants.seeds }, accepts: ProxyHeaderInvariants.check)
}

/// The outcome for a PROXY header depends only on its own bytes. The bytes after it belong to the client.
enum ProxyHeaderInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let first = input.first else { return false }
    let version = ProxyProtocol.Version.allCases[Int(first) % ProxyProtocol.Version.allCases.count]
    let bytes = Array(input.dropFirst())
    let outcome = ProxyHeader.parse(bytes, version)
    for count in bytes.prefixLengths {
      let found = ProxyHeader.parse(Array(bytes.prefix(count)), version)
      switch outcome {
      case .incomplete: try require(found == .incomplete, "a prefix of an incomplete header is incomplete", "\(count)")
      case .header(let header):
        let expected = count < header.length ? .incomplete : outcome
        try require(found == expected, "a header ends at its length", "\(count)")
      // A later byte may violate another rule first. The header must be refused with any of the rules.
      case .fault:
        if case .header = found {
          throw InvariantViolation(invariant: "no prefix of a fault is a header", detail: "\(count)")
        }
      }
    }
    if version != .any { try checkVersion(bytes, version, outcome) }
    guard case .header(let header) = outcome else { return false }
    try require(
      (1...ProxyHeader.longest).contains(header.length) && header.length <= bytes.count, "a header has a limit")
    try require(
      ProxyHeader.parse(bytes + [0x16, 0x03, 0x01], version) == outcome, "the bytes after a header change nothing")
    try checkSource(header.source)
    return true
  }

  /// A header that one version accepts is also accepted while both versions are allowed.
  private static func checkVersion(
    _ bytes: [UInt8], _ version: ProxyProtocol.Version, _ outcome: ProxyHeader.Outcome
  ) throws(InvariantViolation) {
    guard case .header = outcome else { return }
    try require(ProxyHeader.parse(bytes, .any) == outcome, "both versions accept what one accepts")
    try require(ProxyHeader.parse(bytes, version == .v1 ? .v2 : .v1) != outcome, "no header belongs to both versions")
  }

  private static func checkSource(_ source: SocketAddress?) throws(InvariantViolation) {
    guard let source else { return }
    switch source {
    case .ipv4(let bytes, _): try require(bytes.count == 4, "an IPv4 address has four bytes")
    case .ipv6(let bytes, _):
      try require(bytes.count == 16, "an IPv6 address has sixteen bytes")
      try require(
        bytes.prefix(12) != [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], "an IPv4-mapped address is an IPv4 address")
    case .unix: throw InvariantViolation(invariant: "a source is an IP address", detail: "")
    }
    try require(
      SocketAddress(literal: source.host, port: source.port) == source, "a written address is read as the same address")
  }

  static let seeds: [[UInt8]] = {
    let lines = [
      "PROXY TCP4 192.0.2.7 198.51.100.1 40000 443", "PROXY TCP6 2001:db8::7 ::1 0 65535", "PROXY UNKNOWN any thing",
      "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2", "PROXY TCP4 192.0.2.7 198.51.100.1 040 443", "PROXY TCP4 ::1 ::1 1 2",
    ].map { Array("\($0)\r\n\u{16}".utf8) }
    let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    let address: [UInt8] = [192, 0, 2, 7, 198, 51, 100, 1, 0x9C, 0x40, 0x01, 0xBB]
    let long = [UInt8](repeating: 1, count: 36)
    let binary: [[UInt8]] = [
      [0x21, 0x11, 0, 12] + address, [0x21, 0x11, 0, 15] + address + [4, 0, 0], [0x21, 0x21, 0, 36] + long,
      [0x20, 0x00, 0, 0], [0x21, 0x31, 0, 216] + [UInt8](repeating: 0x2F, count: 216), [0x21, 0x11, 0, 3, 1, 2, 3],
    ].map { signature + $0 + [0x16] }
    // Version 1 only, version 2 only, both.
    var seeds: [[UInt8]] = []
    for line in lines { seeds += [[0] + line, [2] + line] }
    for header in binary { seeds += [[1] + header, [2] + header] }
    return seeds
  }()
}
