public import Logging
public import MFADomain
public import ServiceLifecycle

/// Delivers messages in the background. SMS and e-mail have separate queues, so neither waits for the other's
/// provider.
///
/// At shutdown it continues to deliver waiting messages for a short time. Messages still waiting after that are lost:
/// the user requests another code, and a recovery sends a reminder.
public final class QueuedOutbox: Outbox, Service {
  /// The limits and delays of delivery. A code is useful for minutes, and a user can request another one. A message
  /// about a recovery cannot be requested again, so it is retried across an outage of its provider.
  public struct Schedule: Sendable {
    /// The maximum number of waiting messages per queue. Further messages are dropped.
    public var capacity = 1000
    /// The maximum number of simultaneous deliveries to one provider.
    public var mostAtOnce = 4
    /// The maximum number of attempts while failures are temporary.
    public var attempts = 3
    /// The delay before the second attempt. It doubles before each further attempt.
    public var pause = Duration.seconds(1)
    /// The delay after the last attempt before a message other than a code is retried. It doubles after each failure,
    /// up to `longestRest`. A delayed message takes no place in the queue.
    public var rest = Duration.seconds(60)
    /// The maximum of `rest` after doubling.
    public var longestRest = Duration.seconds(900)
    /// The time for delivery of waiting messages after the start of a shutdown.
    public var patience = Duration.seconds(5)

    /// Creates the default values.
    public init() {}
  }

  private let phone: DeliveryQueue
  private let email: DeliveryQueue
  private let patience: Duration

  /// Creates the outbox.
  ///
  /// - Parameters:
  ///   - phone: the provider of SMS; `nil` drops SMS.
  ///   - email: the provider of e-mail; `nil` drops e-mail.
  public init(
    phone: (any MessageProvider)?, email: (any MessageProvider)?, schedule: Schedule = Schedule(), logger: Logger
  ) {
    self.phone = DeliveryQueue(kind: "sms", provider: phone, schedule: schedule, logger: logger)
    self.email = DeliveryQueue(kind: "email", provider: email, schedule: schedule, logger: logger)
    patience = schedule.patience
  }

  /// Delivers from now on, also waiting messages, through these providers.
  public func replaceProviders(phone: (any MessageProvider)?, email: (any MessageProvider)?) {
    self.phone.replaceProvider(phone)
    self.email.replaceProvider(email)
  }

  /// The waiting messages of one queue.
  public struct Waiting: Sendable, Hashable {
    /// `sms` or `email`.
    public let kind: String
    /// The messages that wait for their first attempt.
    public let queued: Int
    /// The messages whose provider failed, and that wait for another attempt.
    public let retrying: Int
    /// The results since the start.
    public let figures: DeliveryFigures
  }

  /// The waiting messages of each queue.
  public var waiting: [Waiting] {
    [("sms", phone), ("email", email)].map { kind, queue in
      let (queued, retrying) = queue.waiting
      return Waiting(kind: kind, queued: queued, retrying: retrying, figures: queue.figures)
    }
  }

  public func send(_ message: OutgoingMessage) { queue(for: message).send(message) }

  private func queue(for message: OutgoingMessage) -> DeliveryQueue {
    switch message.destination {
    case .phone: phone
    case .email: email
    }
  }

  public func run() async throws {
    await withGracefulShutdownHandler {
      await withTaskGroup(of: Bool.self) { group in
        for queue in [phone, email] {
          group.addTask {
            await queue.run()
            return true
          }
        }
        group.addTask { [patience] in
          // Without a service group there is no graceful shutdown; this task then ends by cancellation.
          try? await gracefulShutdown()
          try? await Task.sleep(for: patience)
          return false
        }
        var running = 2
        while running > 0, await group.next() == true { running -= 1 }
        group.cancelAll()
      }
    } onGracefulShutdown: {
      self.phone.close()
      self.email.close()
    }
  }
}
