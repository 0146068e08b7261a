internal import Logging
internal import MFADomain
internal import Observability
internal import ServiceLifecycle

/// Logs a signed head of the history: at start, every five minutes, and after all other services have stopped.
struct HistoryHeadService: Service {
  static let interval = Duration.seconds(300)

  let heads: HistoryHeads
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        await log()
        try? await Task.sleep(for: Self.interval)
      }
    }
    await log()
  }

  private func log() async {
    do {
      guard let head = try await heads.next() else { return }
      logger.notice("history head", metadata: ["head": "\(head)", "entries": .number(head.sequence)])
    } catch let lost as HistoryHeads.Lost {
      logger.error(
        "history changed",
        metadata: [
          "head": "\(lost.head)",
          "reason": "entry \(lost.head.sequence) was logged before, but is now missing or different",
        ])
    } catch {
      logger.error("history head not signed", metadata: ["reason": "\(error)"])
    }
  }
}
