internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation
internal import MFAClient
internal import MFAViewModels
internal import SimulatedDevice

struct LabRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Play the scenarios of the requirements against a gate and the MFA backend behind it.",
    discussion: """
      Each scenario has an account, a phone and an App Attest key of its own. A line each: passed or failed. The exit \
      code is 1 if one fails. Only the documented API is used, so that other servers can be judged, too. A scenario that \
      reaches the server's limits of attempts is played once more after the pause that the server asks for, up to a minute.

      Example:
        attest lab run wss://localhost:6200/ --authority DIR --messages b.log
        attest lab run A-S08 A-S10 wss://localhost:6200/ --authority DIR \\
          --messages b.log --by socket

      where b.log is the log of `mfa-backend run --sms-sink log` behind a gate.
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "Scenarios, like A-S01 (all without any), and the gate, like wss://localhost:6200/.")
  var arguments: [String]

  @Option(help: ArgumentHelp("The log of the backend, in which the phone finds its codes.", valueName: "file"))
  var messages: String

  @Option(help: "How requests are sent: rest, socket; both without it.")
  var by: LabWay?

  @Option(help: ArgumentHelp("Write a JUnit report.", valueName: "file"))
  var junit: String?

  func run() async throws {
    guard let url = arguments.last, url.contains("://") else {
      throw Failure(
        .usage, "the address of the gate is missing", hint: "attest lab run wss://localhost:6200/ --messages FILE")
    }
    let scenarios = try Self.scenarios(arguments.dropLast())
    let inbox = try LabInbox.open(messages)
    let gate = try LabGate(options, url: url)
    var cases: [JUnitReport.Case] = []
    var limit: Duration?
    for way in by.map({ [$0] }) ?? LabWay.allCases {
      for scenario in scenarios {
        let (result, wait) = try await play(scenario, by: way, at: gate, inbox)
        if let wait, !result.report.hasPassed { limit = max(limit ?? .zero, wait) }
        report(result)
        cases.append(result)
      }
    }
    let failures = cases.count { !$0.report.hasPassed }
    if !options.json {
      let time = cases.reduce(Duration.zero) { $0 + $1.duration }
      let verdict = failures == 0 ? "all passed" : "\(failures) failed"
      StandardOutput.write("\(cases.count) played in \(Self.text(time)), \(verdict)\n")
    }
    do throws(Failure) {
      if let junit { try write(JUnitReport.document(cases), to: junit) }
    } catch {
      guard failures > 0 else { throw error }
      // The exit code is that of the scenarios.
      StandardError.write("warning: \(error.message)\n")
    }
    if failures > 0 {
      throw Failure(
        .problems, "\(failures) of \(cases.count) scenarios failed", hint: limit.map { LabPatience.hint(for: $0) })
    }
  }

  /// The scenarios with the given ids, in their order; all for none.
  private static func scenarios(_ ids: some Collection<String>) throws(Failure) -> [Scenario] {
    for id in ids where !Scenario.all.contains(where: { $0.id == id }) {
      let known = Scenario.all.map(\.id).reduce(into: [String]()) { if $0.last != $1 { $0.append($1) } }
      throw Failure(.usage, "no scenario \(id)", hint: "the scenarios are " + known.joined(separator: ", "))
    }
    return Scenario.all.filter { ids.isEmpty || ids.contains($0.id) }
  }

  /// Plays a scenario, and once more if it fails at a limit of attempts that ends soon. Returns the wait that the last
  /// limit asked for, too; `nil` without a limit.
  private func play(
    _ scenario: Scenario, by way: LabWay, at gate: LabGate, _ inbox: LogMessages
  ) async throws(Failure) -> (result: JUnitReport.Case, limit: Duration?) {
    var attempt = 1
    while true {
      let backend = LimitedBackend(try gate.makeBackend(by: way))
      let player = ScenarioPlayer(backend: backend, messages: inbox, log: EventLog(now: { .now() }))
      let start = ContinuousClock.now
      let report = await player.play(scenario, as: .random(for: scenario.id))
      let result = JUnitReport.Case(report: report, way: way.rawValue, duration: ContinuousClock.now - start)
      guard !report.hasPassed, let pause = LabPatience.pause(after: backend.longestWait, attempt: attempt),
        (try? await Task.sleep(for: announced(pause, before: scenario))) != nil
      else { return (result, backend.longestWait) }
      attempt += 1
    }
  }

  private func announced(_ pause: Duration, before scenario: Scenario) -> Duration {
    StandardError.write(
      "note: \(scenario.id) reached a limit of attempts; it is played again in \(Self.text(pause))\n")
    return pause
  }

  private func report(_ result: JUnitReport.Case) {
    let report = result.report
    if options.json {
      JSONOutput.print(ResultLine(result))
      return
    }
    let way = result.way == "rest" ? "rest  " : result.way
    StandardOutput.write(
      "\(report.hasPassed ? "ok    " : "failed")  \(report.id)  \(way)  \(Self.text(result.duration))  \(report.title)\n"
    )
    if let step = report.failedStep {
      let found = TerminalText.printable(step.failure ?? "")
      StandardOutput.write("        \(step.text)\n        found: \(found)\n")
    }
  }

  private static func text(_ duration: Duration) -> String {
    duration.formatted(.units(allowed: [.seconds], width: .narrow, fractionalPart: .show(length: 2)))
  }

  private func write(_ text: String, to path: String) throws(Failure) {
    do {
      try text.write(toFile: path, atomically: true, encoding: .utf8)
    } catch {
      throw Failure(.cannotCreate, "cannot write \(path)")
    }
  }
}

extension ScenarioPlayer.Identity {
  /// An account, a number and a device that no one else uses. `name` is part of the account's name.
  static func random(for name: String) -> Self {
    let bytes = SecureRandom.bytes(8)
    let name = name.lowercased().replacing("-", with: "")
    // Numbers of +1 555 01… belong to no one.
    let digits = bytes.prefix(6).map { String($0 % 10) }.joined()
    return Self(
      username: "lab-\(name)-\(Hex.encode(bytes))", phoneNumber: "+155501\(digits)",
      deviceID: UUID().uuidString.lowercased())
  }
}

/// A scenario as `--json` prints it.
private struct ResultLine: Encodable {
  let id: String
  let title: String
  let by: String
  let passed: Bool
  let seconds: Double
  let step: String?
  let found: String?

  init(_ result: JUnitReport.Case) {
    id = result.report.id
    title = result.report.title
    by = result.way
    passed = result.report.hasPassed
    seconds = (result.duration / .milliseconds(1)).rounded() / 1000
    step = result.report.failedStep?.text
    found = result.report.failedStep?.failure
  }
}
