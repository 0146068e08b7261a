internal import Transport

/// Refuses cross-site requests: a browser names the site of the page that sends the request, and pages of other sites
/// are refused. Apps send no `CrossSiteRule`.
enum CrossSiteRule {
  /// Returns `true` if the request comes from a page of another host than the requested one, or if the origin is
  /// unreadable or ambiguous.
  static func isForeign(in headers: HeaderFields) -> Bool {
    switch headers.only("Origin") {
    case .absent: return false
    case .repeated: return true
    case .once(let origin):
      guard let asked = headers.first("Host").flatMap(hostname), let end = origin.firstRange(of: "://")?.upperBound,
        let asking = hostname(String(origin[end...]))
      else { return true }
      return !HeaderFields.isSame(asked, asking)
    }
  }

  /// Returns `authority` without its port; `nil` if it is malformed.
  private static func hostname(_ authority: String) -> String? {
    let end =
      authority.hasPrefix("[")
      ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : authority.firstIndex(of: ":")
    let (host, port) = (authority[..<(end ?? authority.endIndex)], authority[(end ?? authority.endIndex)...])
    guard !host.isEmpty, !host.contains("/"), port.isEmpty || port.hasPrefix(":") else { return nil }
    return port.dropFirst().allSatisfy { $0.isASCII && $0.isNumber } ? String(host) : nil
  }
}
