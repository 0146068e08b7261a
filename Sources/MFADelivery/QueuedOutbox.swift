internal import ByteCoding
internal import Locking
public import Logging
public import MFADomain
public import ServiceLifecycle

/// Hands messages to providers, one after the other, away from the requests that they come from.
///
/// What waits when the process ends is lost, and the user asks for another code: codes live for minutes, so there is
/// nothing to keep.
public final class QueuedOutbox: Outbox, Service {
  private let phone: (any MessageProvider)?
  private let email: (any MessageProvider)?
  private let attempts: Int
  private let pause: Duration
  private let logger: Logger
  private let queue: AsyncStream<OutgoingMessage>
  private let entrance: AsyncStream<OutgoingMessage>.Continuation

  /// - Parameters:
  ///   - phone: who takes SMS; `nil` if nobody does.
  ///   - email: who takes e-mail.
  ///   - capacity: how many may wait; further ones are dropped, and the log says so.
  ///   - attempts: how often a message is tried while its failures are temporary.
  ///   - pause: how long to wait before the second attempt; before each further one twice as long.
  public init(
    phone: (any MessageProvider)?, email: (any MessageProvider)?, capacity: Int = 1000, attempts: Int = 3,
    pause: Duration = .seconds(1), logger: Logger
  ) {
    self.phone = phone
    self.email = email
    self.attempts = attempts
    self.pause = pause
    self.logger = logger
    (queue, entrance) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(capacity))
  }

  public func send(_ message: OutgoingMessage) {
    if case .dropped = entrance.yield(message) { logger.error("message dropped: too many wait") }
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      for await message in self.queue { await self.deliver(message) }
    }
  }

  private func deliver(_ message: OutgoingMessage) async {
    let (provider, kind) =
      switch message.destination {
      case .phone: (phone, "sms")
      case .email: (email, "email")
      }
    guard let provider else {
      logger.error("message not sent: no provider is configured", metadata: ["kind": "\(kind)"])
      return
    }
    var wait = pause
    for attempt in 1...max(1, attempts) {
      do throws(DeliveryFailure) {
        try await provider.deliver(message)
        return logger.info("message sent", metadata: ["kind": "\(kind)", "attempt": "\(attempt)"])
      } catch {
        let isLast = !error.isTemporary || attempt == attempts
        logger.log(
          level: isLast ? .error : .notice, "message not taken",
          metadata: ["kind": "\(kind)", "attempt": "\(attempt)", "reason": "\(error.reason)"])
        if isLast { return }
        do { try await Task.sleep(for: wait) } catch { return }
        wait *= 2
      }
    }
  }
}
