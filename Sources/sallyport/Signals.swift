@preconcurrency internal import Dispatch
internal import Glibc
internal import Locking

/// Who wants the gate to stop: the first one is heard, later ones change nothing.
final class StopRequests: Sendable {
  private let stream: AsyncStream<String>
  private let continuation: AsyncStream<String>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1)) }

  /// - Parameter reason: for the log.
  func request(_ reason: String) { continuation.yield(reason) }

  func first() async -> String {
    for await reason in stream { return reason }
    return "end"
  }
}

/// The signals that a gate obeys, from the making of this value to its end.
final class Signals: Sendable {
  /// An element for each SIGHUP; several that come at once are one.
  let reloads: AsyncStream<Void>
  private let sources: [any DispatchSourceSignal]

  /// - Parameter stops: where SIGTERM and SIGINT go.
  init(_ stops: StopRequests) {
    let queue = DispatchQueue(label: "sallyport.signals")
    let (reloads, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.reloads = reloads
    let actions: [(Int32, @Sendable () -> Void)] = [
      (SIGTERM, { stops.request("SIGTERM") }), (SIGINT, { stops.request("SIGINT") }),
      (SIGHUP, { continuation.yield() }),
    ]
    sources = actions.map { number, action in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler(handler: action)
      source.resume()
      return source
    }
  }

  deinit { for source in sources { source.cancel() } }
}
