internal import Logging
internal import MFADomain
internal import ServiceLifecycle

/// Writes a signed head of the history to the log: at the start, every five minutes, and when everything else has
/// stopped.
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
      logger.notice("history head", metadata: ["head": "\(head)", "entries": "\(head.sequence)"])
    } catch let lost as HistoryHeads.Lost {
      logger.error(
        "history changed",
        metadata: [
          "head": "\(lost.head)",
          "reason": "entry \(lost.head.sequence), which was logged, was taken out or is another one",
        ])
    } catch {
      logger.error("history head not signed", metadata: ["reason": "\(error)"])
    }
  }
}
