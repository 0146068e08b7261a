internal import ByteCoding

/// The hosts that are reached without a proxy: the value of `no_proxy` or `NO_PROXY`.
///
/// curl reads names, addresses, ranges and a lone `*`. In addition, an entry may have a port, brackets around an IPv6
/// address, or `*.` in front of a domain, which other programs read and curl never matches. An entry that is none of
/// these matches no host.
struct NoProxyList: Sendable, Hashable {
  /// The variable in lowercase.
  static let variable = "no_proxy"
  /// The longest value, in bytes.
  static let longest = 64 << 10

  fileprivate enum Pattern: Sendable, Hashable {
    /// A host or a domain with all names below it.
    case domain([UInt8])
    /// The names below a domain.
    case below([UInt8])
    /// The addresses that share the first bits.
    case range([UInt8], bits: Int)
  }

  fileprivate struct Entry: Sendable, Hashable {
    let pattern: Pattern
    /// `nil` for every port.
    let port: UInt16?
  }

  private let everything: Bool
  private let entries: [Entry]

  /// - Throws: `ProxyVariableError` for a value of more than `longest` bytes.
  init(_ value: String, of variable: String) throws(ProxyVariableError) {
    let bytes = Array(value.utf8.prefix(Self.longest + 1))
    guard bytes.count <= Self.longest else {
      throw ProxyVariableError(variable: variable, reason: "the value is longer than \(Self.longest) bytes")
    }
    let words = bytes.split { $0 <= 0x20 || $0 == UInt8(ascii: ",") }
    everything = words.count == 1 && words[0] == [UInt8(ascii: "*")]
    entries = everything ? [] : words.compactMap { Entry($0.map(\.lowercasedASCII)) }
  }

  /// No host.
  init() { (everything, entries) = (false, []) }

  /// Whether `host` is reached without a proxy at `port`.
  func contains(_ host: HostAddress, port: UInt16) -> Bool {
    everything || entries.contains { $0.contains(host, port: port) }
  }
}

extension NoProxyList.Entry {
  /// - Parameter word: In lowercase.
  fileprivate init?(_ word: [UInt8]) {
    if let range = Self.range(word) {
      (pattern, port) = (range, nil)
      return
    }
    var host = word[...]
    var found: UInt16?
    if let colon = word.lastIndex(of: UInt8(ascii: ":")) {
      let digits = String(decoding: word[(colon + 1)...], as: UTF8.self)
      guard let number = ForwardProxy.decimalPort(digits[...]) else { return nil }
      found = number
      host = word[..<colon]
    }
    port = found
    if let range = Self.range(Array(host)) {
      pattern = range
      return
    }
    guard !host.contains(UInt8(ascii: ":")) else { return nil }
    if host.last == UInt8(ascii: ".") { host = host.dropLast() }
    let isBelow = host.starts(with: "*.".utf8)
    host = isBelow ? host.dropFirst(2) : host.first == UInt8(ascii: ".") ? host.dropFirst() : host
    guard !host.isEmpty else { return nil }
    pattern = isBelow ? .below(Array(host)) : .domain(Array(host))
  }

  /// An address, or a range in the form of RFC 4632.
  private static func range(_ word: [UInt8]) -> NoProxyList.Pattern? {
    let parts = word.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
    var host = parts.first ?? []
    if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") { host = host.dropFirst().dropLast() }
    let text = String(decoding: host, as: UTF8.self)
    guard case .address(let bytes) = HostAddress(ipv4: text) ?? HostAddress(ipv6: text) else { return nil }
    guard parts.count == 2 else { return .range(bytes, bits: bytes.count * 8) }
    guard (1...3).contains(parts[1].count), parts[1].allSatisfy(ForwardProxy.isDigit) else { return nil }
    let bits = parts[1].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    return bits <= bytes.count * 8 ? .range(bytes, bits: bits) : nil
  }

  fileprivate func contains(_ host: HostAddress, port: UInt16) -> Bool {
    guard self.port == nil || self.port == port else { return false }
    switch (pattern, host) {
    case (.domain(let domain), .name(let name)): return name == domain || name.isBelow(domain)
    case (.below(let domain), .name(let name)): return name.isBelow(domain)
    case (.range(let prefix, let bits), .address(let address)): return address.begins(with: prefix, bits: bits)
    case (.domain, .address), (.below, .address), (.range, .name): return false
    }
  }
}

extension [UInt8] {
  /// Whether the name ends with a dot and `domain`.
  fileprivate func isBelow(_ domain: [UInt8]) -> Bool {
    count > domain.count + 1 && suffix(domain.count) == domain[...] && self[count - domain.count - 1] == 0x2E
  }

  /// Whether the first bits are those of `other`, which has the same length.
  fileprivate func begins(with other: [UInt8], bits: Int) -> Bool {
    guard count == other.count else { return false }
    var left = bits
    for (mine, theirs) in zip(self, other) {
      guard left > 0 else { break }
      let mask: UInt8 = left >= 8 ? 0xFF : ~(0xFF >> UInt8(left))
      guard (mine ^ theirs) & mask == 0 else { return false }
      left -= 8
    }
    return true
  }
}
