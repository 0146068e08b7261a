/// The origins of other hosts from which a route accepts requests. The host's own pages are always accepted.
///
/// Pages of an app's web view have an origin that no host has, such as `capacitor://localhost`.
public struct AllowedOrigins: Sendable, Hashable {
  /// Compared byte by byte.
  private let exact: [[UInt8]]
  /// Whether every origin except `null` is accepted from clients whose device was admitted by an assertion. A page cannot
  /// make one, whereas a browser presents a client certificate for every page.
  let anyWithAssertion: Bool

  /// - Parameter exact: Origins as browsers write them: `https://localhost`, and `null` too.
  public init(_ exact: [String] = [], anyWithAssertion: Bool = false) {
    self.exact = exact.map { Array($0.utf8) }
    self.anyWithAssertion = anyWithAssertion
  }

  /// Whether the origin is listed.
  func contains(_ origin: String) -> Bool { exact.contains { $0.elementsEqual(origin.utf8) } }
}
