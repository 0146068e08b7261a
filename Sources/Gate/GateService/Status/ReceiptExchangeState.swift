extension GateStatus {
  /// The exchange of receipts with Apple for the risk metric, as this gate has taken part in it.
  public struct ReceiptExchange: Codable, Sendable, Hashable {
    /// The numbers of exchanges since the start that brought a new receipt, and that failed.
    public var renewed: UInt64
    public var failed: UInt64
    /// The time of the last new receipt; absent if there was none, like the next one.
    public var lastRenewalAt: String?
    public var secondsSinceRenewal: Int64?
    /// Whether Apple refuses the authorization of a developer key, so that its exchanges are stopped.
    public var stopped: Bool
    /// Why exchanges fail now; absent if they do not.
    public var fault: String?

    enum CodingKeys: String, CodingKey {
      case renewed, failed, stopped, fault
      case lastRenewalAt = "last_renewal_at"
      case secondsSinceRenewal = "seconds_since_renewal"
    }

    public init(
      renewed: UInt64, failed: UInt64, lastRenewalAt: String?, secondsSinceRenewal: Int64?, stopped: Bool,
      fault: String?
    ) {
      (self.renewed, self.failed, self.lastRenewalAt) = (renewed, failed, lastRenewalAt)
      (self.secondsSinceRenewal, self.stopped, self.fault) = (secondsSinceRenewal, stopped, fault)
    }

    /// The state as text.
    public var text: String {
      if let fault { return "\(stopped ? "STOPPED" : "WARNING"): \(fault)" }
      let last = secondsSinceRenewal.map { ", the last one \(Figures.span(seconds: $0)) ago" } ?? ""
      return "\(renewed) exchanged\(last), \(failed) failed"
    }
  }
}
