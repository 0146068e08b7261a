import Locking
public import MFADomain

/// Keeps messages instead of sending them.
public final class CapturedOutbox: Outbox {
  private let sent = LockedValue<[OutgoingMessage]>([])

  public init() {}

  public func send(_ message: OutgoingMessage) { sent.withLock { $0.append(message) } }

  public var messages: [OutgoingMessage] { sent.withLock { $0 } }
  public var lastCode: String? { messages.last?.code }
}

/// Keeps push notifications instead of sending them.
public final class CapturedPushes: PushOutbox {
  private let sent = LockedValue<[PushNotification]>([])

  public init() {}

  public func send(_ notification: PushNotification) { sent.withLock { $0.append(notification) } }

  public var notifications: [PushNotification] { sent.withLock { $0 } }
}
