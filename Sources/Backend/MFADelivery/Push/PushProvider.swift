public import ByteCoding
internal import Wire
public import MFADomain

/// A push service that delivers notifications to app instances.
public protocol PushProvider: Sendable {
  /// Hands one notification over. Returns once the service has accepted it.
  func deliver(_ notification: PushNotification) async throws(PushFailure)
  /// Reaches the service and asks whether it accepts the credentials. No device gets anything.
  ///
  /// - Returns: what was proved, in a few words.
  func probe() async throws(PushFailure) -> String
}

/// The reason why a push service did not accept a notification.
public struct PushFailure: Error, Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    /// The service does not know the address, since that time; `nil` if it names none.
    case unregistered(since: Timestamp?)
    /// A later attempt may succeed, not before `after` if the service names a time. `isOfService` is `false` if only
    /// this address is concerned.
    case temporary(after: Duration?, isOfService: Bool)
    /// There were too many notifications for this address or for all: the service does not say which. A later attempt may
    /// succeed, not before `after` if the service names a time.
    case throttled(after: Duration?)
    /// The service refuses the credentials. Every other notification fails in the same way.
    case configuration
    /// The service refuses this notification.
    case refused
  }

  public let kind: Kind
  /// The reason for the log, without token and address.
  public let reason: String

  /// Whether only the address is refused, for a time.
  var isOfAddress: Bool { if case .temporary(_, isOfService: false) = kind { true } else { false } }

  public init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// The failure of an exchange. A service that received the notification and did not answer may deliver it twice, which
  /// the app shows once: both have the same id.
  init(_ error: TransportError) {
    self.init(.temporary(after: nil, isOfService: true), "\(error)")
  }
}

/// A key or an account of a push service cannot be used.
public struct PushKeyFault: Error, Sendable, Hashable {
  /// The reason, without a part of the key.
  public let reason: String

  init(_ reason: String) { self.reason = reason }
}

extension HTTPResponse {
  /// The longest wait that a service can ask for.
  private static let longestRetryAfter: Int64 = 600

  /// The wait in seconds that the service asks for; `nil` if it asks for none, or by a date.
  var retryAfter: Duration? {
    guard let text = value(of: "Retry-After"), (1...6).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int64(text)
    else { return nil }
    return .seconds(min(seconds, Self.longestRetryAfter))
  }

  /// A word of the service for the log: letters and underscores, at most 60; `nil` for anything else. No token is one.
  static func word(_ text: String?) -> String? {
    guard let text, (1...60).contains(text.utf8.count),
      text.utf8.allSatisfy({ $0 == 0x5F || (0x41...0x5A).contains($0 & 0xDF) })
    else { return nil }
    return text
  }
}
