/// The checks that a request to `/readyz` leaves out: `?exclude=NAME`, once for each name, as in Kubernetes.
public struct ExcludedChecks: Sendable {
  private let names: [String]

  /// The names that a warning repeats, and the Unicode scalars of each of them: a character may have any number of
  /// combining marks.
  private static let longest = (names: 8, scalars: 64)

  /// - Parameter names: the values of the parameter, percent-decoded. A `+` may stand for a space of a name.
  public init(_ names: [String]) { self.names = names }

  /// Whether a check named `name` does not count.
  public func contains(_ name: String) -> Bool { names.contains { Self.value($0, names: name) } }

  /// A sentence about values that name none of the checks `known`; `nil` if each value names one. Such a value excludes
  /// nothing and is no fault of the request: a monitor's query stays valid for a program without the check.
  public func warning(known: [String]) -> String? {
    let unmatched = names.filter { value in !known.contains { Self.value(value, names: $0) } }
    guard !unmatched.isEmpty else { return nil }
    let shown = unmatched.prefix(Self.longest.names).map {
      "\"\(TerminalText.printable(String($0.unicodeScalars.prefix(Self.longest.scalars))))\""
    }
    let rest = unmatched.count > shown.count ? " and \(unmatched.count - shown.count) more" : ""
    return "some health checks cannot be excluded: no matches for \(shown.joined(separator: ","))\(rest)"
  }

  // By bytes: to look for a sign among characters takes time with the square of the marks in a row.
  private static func value(_ value: String, names name: String) -> Bool {
    value.hasSameBytes(as: name)
      || value.utf8.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }.elementsEqual(name.utf8)
  }
}
