internal import ByteCoding
internal import Transport

/// Refuses cross-site requests: a browser names the site of the page that sends the request, and pages of other sites
/// are refused unless the route accepts them. Apps without a web view send no `Origin`.
enum CrossSiteRule {
  enum Verdict: Sendable, Hashable {
    case welcome
    /// Welcome if an assertion admits the client.
    case welcomeWithAssertion
    case foreign
  }

  /// Judges the origin of a request to a route that accepts `origins`.
  static func verdict(on headers: HeaderFields, _ origins: AllowedOrigins) -> Verdict {
    guard isForeign(in: headers) else { return .welcome }
    guard case .once(let origin) = headers.only("Origin") else { return .foreign }
    if origins.contains(origin) { return .welcome }
    // Sandboxed pages of every site have the origin `null`.
    let isNamed = authority(of: Array(origin.utf8)) != nil
    return origins.anyWithAssertion && isNamed ? .welcomeWithAssertion : .foreign
  }

  /// Returns `true` if the request comes from a page of another host than the requested one, or if the origin is
  /// unreadable or ambiguous.
  static func isForeign(in headers: HeaderFields) -> Bool {
    switch headers.only("Origin") {
    case .absent: return false
    case .repeated: return true
    case .once(let origin):
      let origin = Array(origin.utf8)
      guard let asked = headers.first("Host").flatMap({ hostname(Array($0.utf8)[...]) }),
        let asking = authority(of: origin).flatMap(hostname)
      else { return true }
      return !asked.elementsEqual(asking) { $0.lowercasedASCII == $1.lowercasedASCII }
    }
  }

  // Texts of a client, so they are read as bytes: a `Character` of many combining marks is expensive to compare.

  /// Returns the part of an origin after the first `://`; `nil` if there is none.
  private static func authority(of origin: [UInt8]) -> ArraySlice<UInt8>? {
    let mark = Array("://".utf8)
    return origin.indices.first { origin[$0...].starts(with: mark) }.map { origin[($0 + mark.count)...] }
  }

  /// Returns `authority` without its port; `nil` if it is malformed.
  private static func hostname(_ authority: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    let colon = UInt8(ascii: ":")
    let end =
      authority.first == UInt8(ascii: "[")
      ? authority.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } : authority.firstIndex(of: colon)
    let (host, port) = (authority[..<(end ?? authority.endIndex)], authority[(end ?? authority.endIndex)...])
    guard !host.isEmpty, !host.contains(UInt8(ascii: "/")), port.isEmpty || port.first == colon else { return nil }
    return port.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? host : nil
  }
}
