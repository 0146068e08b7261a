/// What a receiver of webhooks hears of. The texts are for programs outside and do not change.
public enum GateEvent: Sendable, Hashable {
  /// A device registered a key. A repetition of the same registration is no event.
  case registered(key: String, app: String, platform: String, requestID: String)
  /// A key was revoked: by an operator, by the status list of Android certificates, or because of its risk metric.
  case revoked(key: String, by: Author)
  case restored(key: String)
  case removed(key: String)
  /// Refusals with `code` have become many: `count` within the last minute.
  case refusalsBegan(code: String, count: UInt64)
  /// They are few again, after `count` in all.
  case refusalsEnded(code: String, count: UInt64)

  public enum Author: String, Sendable, Hashable {
    case `operator`
    case statusList = "status_list"
    case risk
  }
}

/// Takes events without waiting for anything; silent without a receiver.
public struct EventAnnouncer: Sendable {
  private let tell: (@Sendable (GateEvent) -> Void)?

  /// Tells `tell` about every event. It is called on event loops and must not wait.
  public init(_ tell: @escaping @Sendable (GateEvent) -> Void) { self.tell = tell }

  private init() { tell = nil }

  /// Tells nothing to any receiver.
  public static let silent = EventAnnouncer()

  /// Announces an event that is made only if there is a receiver.
  package func callAsFunction(_ event: @autoclosure () -> GateEvent) { if let tell { tell(event()) } }
}
