internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import GateRuntime
internal import GateService
internal import Settings

/// Shows the state of a running gate.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows the state of a running gate: readiness, sessions, refusals, upstreams, certificates, store.",
    discussion: """
      Exits 0 if the gate is ready, 1 if it is not, 69 if no gate runs. The gate needs an admin server: admin.listen. \
      The same status is available for browsers at /status.

      Example:

        sallyport status
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Print the status as one line of JSON.")
  var json = false

  func run() async throws {
    let status: GateStatus
    status = try await configuration.client().send("GET", "/v1/status", GateStatus.self)
    Console.print(json ? JSONText.encoding(status) : StatusText(status: status).text)
    if !status.ready { throw ExitCode(Status.problems.rawValue) }
  }
}

/// Formats a gate's status as text.
struct StatusText {
  let status: GateStatus

  var text: String {
    let lines =
      [heading]
      + rows.map { name, value in
        "  " + name + String(repeating: " ", count: max(1, 15 - name.count)) + TerminalText.printable(value)
      }
    return lines.joined(separator: "\n")
  }

  private var heading: String {
    "sallyport \(TerminalText.printable(status.version)): \(condition), "
      + "up \(Figures.span(seconds: status.uptimeSeconds)), listening at \(TerminalText.printable(status.address))"
  }

  private var condition: String {
    guard status.ready else { return "not ready" }
    return status.hasWarnings ? "ready, with warnings" : "ready"
  }

  private var rows: [(name: String, value: String)] {
    let activity = status.activity
    var rows: [(String, String)] = []
    switch status.enforcement {
    case .off: rows.append(("ENFORCEMENT OFF", "all clients are admitted without verification"))
    case .monitor: rows.append(("MONITOR MODE", "clients that fail verification are admitted anonymously"))
    case .enforce: break
    }
    for check in status.checks {
      rows.append((check.name, check.detail))
      guard check.name == "status list", let list = status.statusList else { continue }
      rows.append(("", list.source))
      rows += list.fault.map { [("", $0)] } ?? []
    }
    rows.append(("sessions", "\(status.sessions.open) open, \(status.sessions.connections) connections"))
    if let loops = status.loops { rows.append(("event loops", "\(loops.count): \(loops.reason)")) }
    if let groups = status.keyExchange { rows.append(("key exchange", groups.joined(separator: ", "))) }
    rows += (status.risk ?? []).map { ("risk", $0.text) }
    if let tokens = status.tokens { rows.append(("tokens", tokens.text)) }
    if let exchange = status.receiptExchange { rows.append(("receipts", exchange.text)) }
    rows += [
      ("last minute", Self.text(activity.lastMinute)), ("last hour", Self.text(activity.lastHour)),
      (
        "traffic",
        "\(Figures.bytes(status.traffic.bytesFromClients)) from clients, "
          + "\(Figures.bytes(status.traffic.bytesFromUpstreams)) from upstreams"
      ),
    ]
    rows += status.refusals.prefix(Self.mostRefusals).map {
      ("refused", "\($0.code): \($0.lastHour) in the last hour, \($0.total) in total")
    }
    if status.refusals.count > Self.mostRefusals {
      rows.append(("", "and \(status.refusals.count - Self.mostRefusals) more reasons: --json lists all"))
    }
    rows += (status.upstreams ?? []).flatMap { Self.rows(of: $0) }
    rows += status.certificates.map { certificate in
      let left = certificate.secondsLeft
      let end = left > 0 ? "expires in \(Figures.span(seconds: left))" : "EXPIRED"
      return (certificate.name == "client_ca" ? "client CA" : "certificate", "\(end) (\(certificate.subject))")
    }
    rows += status.certificates.compactMap(\.renewal).map { ("", $0.text) }
    rows += status.certificates.filter { !$0.isFileServed }.map {
      ("NOT SERVED", "the changed files of \($0.name): the previous certificate is still in use")
    }
    rows += Self.lines(of: status.certificateFault, under: "not loaded")
    rows.append(("store at", status.store.place))
    rows.append(("configuration", "loaded \(status.configuration.loadedAt)"))
    rows += Self.lines(of: status.configuration.fault, under: "not reloaded")
    return rows
  }

  private static let mostRefusals = 8

  private static func rows(of upstream: GateStatus.UpstreamState) -> [(String, String)] {
    let attempts = "\(upstream.recentFailures) of the last \(upstream.recentAttempts) attempts failed"
    let state =
      switch upstream.condition {
      case .untried: "not tried yet"
      case .available: "ok"
      case .failing: "WARNING: \(attempts)"
      }
    let success = upstream.lastSuccess.map { "last success \(Figures.span(seconds: $0.secondsAgo)) ago" }
    let failure = upstream.lastFailure.map { moment in
      "last failure \(Figures.span(seconds: moment.secondsAgo)) ago (\(upstream.lastFailureReason ?? ""))"
    }
    let rest = [success, failure].compactMap(\.self).map { ("", $0) }
    let servers = (upstream.servers ?? []).map { server in
      ("", "\(server.upstream): \(server.condition.rawValue), \(server.sessions ?? 0) open")
    }
    return [("upstream", "\(upstream.route) to \(upstream.upstream): \(state)")] + rest + servers
  }

  private static func lines(of fault: String?, under name: String) -> [(String, String)] {
    let lines = fault?.split(whereSeparator: \.isNewline) ?? []
    return lines.enumerated().map { ($0 == 0 ? name : "", String($1)) }
  }

  private static func text(_ counts: GateStatus.Counts) -> String {
    "\(counts.admitted) admitted, \(counts.refused) refused, \(counts.registered) registered"
  }
}
