/// A filter by the risk metric that policies act on.
public enum RiskSelection: Sendable, Hashable {
  /// Keys with a current metric in this range.
  case metric(ClosedRange<Int>)
  /// Keys without a current metric: none was reported, or it is outdated.
  case unknown

  /// The forms of `init(_:)`, for messages.
  public static let form = "a metric (3), a range (1-3), a least metric (3+), or unknown"

  /// Parses a filter as operators write it; `nil` for any other text.
  public init?(_ text: String) {
    if text == "unknown" {
      self = .unknown
    } else if text.hasSuffix("+") {
      guard let least = Self.number(text.dropLast()) else { return nil }
      self = .metric(least...Int.max)
    } else {
      let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
      guard (1...2).contains(bounds.count), let least = bounds[0], let most = bounds[bounds.count - 1], least <= most
      else { return nil }
      self = .metric(least...most)
    }
  }

  /// At most nine digits without a sign.
  private static func number(_ text: Substring) -> Int? {
    (1...9).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
  }

  /// The range of `metric`; `nil` for `unknown`.
  public var metrics: ClosedRange<Int>? {
    if case .metric(let range) = self { range } else { nil }
  }

  /// Whether a key with `risk` is selected.
  public func picks(_ risk: StoredRisk?) -> Bool {
    switch self {
    case .metric(let range): risk?.current.map { range.contains($0.metric) } ?? false
    case .unknown: risk?.current == nil
    }
  }
}
