internal import ConsoleServing
internal import GateService
internal import ByteCoding

/// The state of the gate and its last hour.
enum OverviewPage {
  static func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let status = try await gate.get("/v1/status", GateStatus.self).value
    let activity = try await gate.get("/v1/activity", ActivityListing.self).value
    let condition = StatusPage.condition(of: status)
    let state: HTML = """
      <p><span class="pill \(condition.tone)">\(condition.text)</span> \(status.version) · up \
      \(Figures.span(seconds: status.uptimeSeconds)) · listening on \(status.address)</p>
      """
    return ConsolePage(
      "Overview", command: gate.line(["status"]),
      content: """
        \(state)
        \(StatusPage(status: status).summary)
        \(charts(activity.minutes))
        \(StatusPage(status: status).details)
        """,
      isLive: true)
  }

  private static func charts(_ minutes: [MinuteDescription]) -> HTML {
    let totals = minutes.reduce(into: [String: UInt64]()) { totals, minute in
      for (code, count) in minute.refusals { totals[code, default: 0] &+= count }
    }
    let codes = totals.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
    let tones = ConsoleChart.Tone.faults
    // The last color is for the rest.
    let named = codes.count > tones.count ? Array(codes.prefix(tones.count - 1)) : codes
    var series = zip(named, tones).map { code, tone in
      ConsoleChart.Series(code, tone, minutes.map { $0.refusals[code] ?? 0 })
    }
    if named.count < codes.count, let tone = tones.last {
      let rest = minutes.map { minute in
        minute.refusals.filter { !named.contains($0.key) }.values.reduce(0, &+)
      }
      series.append(ConsoleChart.Series("others", tone, rest))
    }
    return """
      <div class="pair">
      \(ConsoleChart("Admissions", [.init("admitted", .good, minutes.map(\.admitted))]).card)
      \(ConsoleChart("Refusals by code", series).card)
      </div>
      \(ConsoleChart("Open sessions", [.init("open", .good, minutes.map { UInt64(clamping: $0.sessions) })], isSum: false).card)
      """
  }
}
