internal import ByteCoding
internal import Commands
internal import Glibc

/// Reports the progress and the result of a load run.
struct LoadConsole: Sendable {
  let isJSON: Bool
  /// Whether to wait for lines of input.
  let isStepped: Bool
  private let input = InputLines()

  init(isJSON: Bool, isStepped: Bool) {
    self.isJSON = isJSON
    self.isStepped = isStepped
  }

  /// Reports an event to scripts.
  func say(_ news: String) {
    guard isStepped else { return }
    StandardOutput.write(isJSON ? JSONOutput.line(["event": news]) : TerminalText.printable(news) + "\n")
  }

  /// With steps, waits for a line of input; `false` at its end.
  func mayGoOn() async throws(Failure) -> Bool {
    guard isStepped else { return true }
    return try await input.next() != nil
  }

  func report(_ result: LoadResult, of plan: LoadPlan, at url: String) {
    let report = LoadReport(result, of: plan, at: url)
    if isJSON {
      JSONOutput.print(report)
    } else {
      StandardOutput.write(TerminalText.printableLines(report.text) + result.tally.latency.chart)
    }
  }
}

/// The progress of a run on the terminal. Prints nothing if standard error is not a terminal.
final class LoadProgress: Sendable {
  private let task: Task<Void, Never>?

  init(_ plan: LoadPlan, _ tally: @escaping @Sendable () async -> LoadTally) {
    guard isatty(STDERR_FILENO) == 1, !plan.console.isStepped else {
      task = nil
      return
    }
    let start = monotonicNanoseconds()
    task = Task {
      var last = (count: 0, at: start)
      while (try? await Task.sleep(for: .milliseconds(500))) != nil {
        let tally = await tally()
        let now = monotonicNanoseconds()
        let rate = Double(tally.count - last.count) * 1e9 / Double(max(1, now - last.at))
        last = (tally.count, now)
        let line =
          "\(tenths(Double(now - start) / 1e9)) s  \(tally.count) \(plan.mode.unit)  \(Int(rate)) a second"
          + "  p99 \(timeText(tally.latency.quantile(0.99)))" + (tally.losses > 0 ? "  \(tally.losses) lost" : "")
        if !Task.isCancelled { StandardError.write("\r\u{1B}[K" + line) }
      }
    }
  }

  func stop() {
    guard let task else { return }
    task.cancel()
    StandardError.write("\r\u{1B}[K")
  }
}
