public import Logging
public import MFADomain
public import ServiceLifecycle

/// Hands messages to providers, away from the requests that they come from: SMS and e-mail by a queue each, so that
/// neither waits for the other's provider.
///
/// When it is told to stop, what waits is still delivered, for a while. What then waits or rests is lost: the user
/// asks for another code, and of a recovery its recipients are reminded.
public final class QueuedOutbox: Outbox, Service {
  /// How messages are delivered. A code is of use for minutes, and its user can ask for another one. A message about
  /// a recovery is not asked for again, so it outlasts an outage of its provider.
  public struct Schedule: Sendable {
    /// How many may wait in a queue; further ones are dropped.
    public var capacity = 1000
    /// How many a provider is given at the same time.
    public var mostAtOnce = 4
    /// How often a message is tried while its failures are temporary.
    public var attempts = 3
    /// How long to wait before the second attempt; before each further one twice as long.
    public var pause = Duration.seconds(1)
    /// How long what is no code then rests before it is tried again; after each further failure twice as long, up to
    /// `longestRest`, while it is of use. It takes no place of others meanwhile.
    public var rest = Duration.seconds(60)
    public var longestRest = Duration.seconds(900)
    /// How long what waits is still delivered after the order to stop.
    public var patience = Duration.seconds(5)

    public init() {}
  }

  private let phone: DeliveryQueue
  private let email: DeliveryQueue
  private let patience: Duration

  /// - Parameters:
  ///   - phone: the provider of SMS; `nil` for none.
  ///   - email: the provider of e-mail; `nil` for none.
  public init(
    phone: (any MessageProvider)?, email: (any MessageProvider)?, pace: Schedule = Schedule(), logger: Logger
  ) {
    self.phone = DeliveryQueue(kind: "sms", provider: phone, pace: pace, logger: logger)
    self.email = DeliveryQueue(kind: "email", provider: email, pace: pace, logger: logger)
    patience = pace.patience
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
          // Without a group of services there is no order to stop, and this ends with the task.
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
