extension GateStatus {
  /// The risk metrics of an app's keys. Revoked keys are not counted.
  public struct Risk: Codable, Sendable, Hashable {
    public var app: String
    /// `observe`, `refuse` or `revoke`.
    public var action: String
    /// Absent if there is none, as may be with `observe`.
    public var threshold: Int?
    /// The number of keys with a current metric; absent until keys were counted, like the next two.
    public var assessed: Int?
    /// The number of keys without one.
    public var unknown: Int?
    /// The number of keys with a metric above the threshold; absent without a threshold.
    public var above: Int?

    public init(app: String, action: String, threshold: Int?, assessed: Int?, unknown: Int?, above: Int?) {
      (self.app, self.action, self.threshold) = (app, action, threshold)
      (self.assessed, self.unknown, self.above) = (assessed, unknown, above)
    }

    /// The state as text.
    public var text: String {
      let policy = threshold.map { "\(action) above \($0)" } ?? action
      guard let assessed, let unknown else { return "\(app): \(policy), not counted yet" }
      let keys = above.map { "\(assessed) keys with a metric (\($0) above)" } ?? "\(assessed) keys with a metric"
      return "\(app): \(policy), \(keys), \(unknown) without"
    }
  }
}
