internal import Transport

/// The counts of one minute.
public struct MinuteDescription: Codable, Sendable, Hashable {
  public var admitted: UInt64 = 0
  public var registered: UInt64 = 0
  /// The open sessions at the end of the minute.
  public var sessions = 0
  /// The refused requests of each code; codes without any are absent.
  public var refusals: [String: UInt64] = [:]
}

/// The last hour of a gate.
public struct ActivityListing: Codable, Sendable, Hashable {
  /// The last minutes, up to 60, the oldest first.
  public let minutes: [MinuteDescription]

  public init(minutes: [MinuteDescription]) { self.minutes = minutes }
}

/// `/v1/activity`: the counts of each minute of the last hour.
public struct ActivityResource: AdminResource {
  private let log: ActivityLog

  public init(_ log: ActivityLog) { self.log = log }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/activity", "Returns the counts of each minute of the last hour.",
        answers: AdminAnswers(200, schema: .activityListing)
      ) { _ throws(AdminError) in .json(ActivityListing(minutes: log.minutes())) }
    ]
  }
}
