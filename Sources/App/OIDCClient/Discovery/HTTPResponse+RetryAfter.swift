internal import ByteCoding
internal import Wire

extension HTTPResponse {
  /// `Retry-After` in seconds (RFC 9110, section 10.2.3), at most a day; `nil` if it is absent or malformed.
  ///
  /// A date counts from the field `Date` of the same answer: both are of the clock of the server.
  var retryAfter: Int? {
    guard let text = value(of: "Retry-After") else { return nil }
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      return Self.bounded(Int64(text) ?? .max)
    }
    guard let end = Self.instant(text), let now = value(of: "Date").flatMap(Self.instant) else { return nil }
    return Self.bounded(end.since(now).components.seconds)
  }

  private static func bounded(_ seconds: Int64) -> Int {
    Int(min(max(seconds, 0), Int64(RefreshDecision.longestPause)))
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// A date in the only form that is still sent (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
  private static func instant(_ text: String) -> Timestamp? {
    let parts = text.split(separator: " ")
    guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])),
      parts[1].utf8.count == 2, parts[3].utf8.count == 4
    else { return nil }
    let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
    return Timestamp(rfc3339: "\(parts[3])-\(number)-\(parts[1])T\(parts[4])Z")
  }
}
