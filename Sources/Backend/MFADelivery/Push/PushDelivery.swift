public import ByteCoding
internal import Locking
public import Logging
public import MFADomain
public import ServiceLifecycle

/// Delivers push notifications in the background, each service from a queue of its own, so that neither waits for the
/// other.
///
/// A notification is tried until its service accepts it or until its own end, which is two minutes for a sign-in. At a
/// shutdown, waiting notifications have a short time; then they are lost, and the app learns by its socket.
public final class PushDelivery: PushOutbox, Service {
  /// The limits and pauses of delivery.
  public struct Schedule: Sendable {
    /// The maximum number of waiting notifications per service. Further ones are dropped.
    public var capacity = 1000
    /// The maximum number of notifications of one service in delivery, pauses included.
    public var mostAtOnce = 16
    /// The pause after the first failure. It doubles after each further one.
    public var pause = Duration.seconds(1)
    /// The longest pause, unless a service asks for a longer one.
    public var longestPause = Duration.seconds(30)
    /// How long a notification is tried, if it does not end before. A service keeps an accepted one for longer.
    public var longestDelivery = Duration.seconds(600)
    /// The maximum number of attempts while the service refuses one address for a time.
    public var attemptsOfAddress = 3
    /// How long a service that refuses the credentials is not asked.
    public var stop = Duration.seconds(600)
    /// The time for delivery of waiting notifications after the start of a shutdown.
    public var patience = Duration.seconds(3)

    /// Creates the default values.
    public init() {}

    var circuit: PushCircuit { PushCircuit(pause: pause, longestPause: longestPause, stop: stop) }
  }

  /// Removes an address that its service does not know since an instant.
  public typealias Forgetting = @Sendable (_ address: PushAddress, _ since: Timestamp) async -> Void

  /// The waiting notifications of one service.
  public struct Waiting: Sendable, Hashable {
    public let service: PushAddress.Service
    /// The notifications that wait for their first attempt.
    public let queued: Int
    /// The notifications that wait for another attempt.
    public let retrying: Int
    /// Why the service is not asked; `nil` if it is.
    public let fault: String?
    /// The results since the start.
    public let figures: DeliveryFigures
  }

  private let queues: [PushQueue]
  private let patience: Duration

  /// Creates the delivery, without a provider.
  ///
  /// - Parameters:
  ///   - clock: the clock of the ends of notifications.
  ///   - forget: removes an address that its service does not know.
  public init(
    schedule: Schedule = Schedule(), clock: WallClock = .system, logger: Logger, forget: @escaping Forgetting
  ) {
    queues = PushAddress.Service.allCases.map {
      PushQueue($0, schedule: schedule, clock: clock, logger: logger, forget: forget)
    }
    patience = schedule.patience
  }

  /// Delivers from now on, also waiting notifications, through these providers.
  public func replaceProviders(_ providers: [PushAddress.Service: any PushProvider]) {
    for queue in queues { queue.replaceProvider(providers[queue.service]) }
  }

  /// The waiting notifications of each service.
  public var waiting: [Waiting] { queues.map(\.waiting) }

  public func send(_ notification: PushNotification) {
    queues.first { $0.service == notification.address.service }?.send(notification)
  }

  public func run() async throws {
    await withGracefulShutdownHandler {
      await withTaskGroup(of: Bool.self) { group in
        for queue in queues {
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
        var running = queues.count
        while running > 0, await group.next() == true { running -= 1 }
        group.cancelAll()
      }
    } onGracefulShutdown: {
      for queue in self.queues { queue.close() }
    }
  }
}
