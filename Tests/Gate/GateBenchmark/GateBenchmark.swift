import ArgumentParser
import GateFixtures
import SQLiteStore

/// Measures the cost of an admission or a registration by calling the gate directly: without sockets, but with the
/// whole gate, including its durable store on disk.
@main
struct GateBenchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gate-bench",
    abstract: "Measures admissions and registrations by calling the gate directly.",
    discussion: """
      Claims are made before the clock starts, in rounds. CPU time is that of the whole process, user and \
      system, from getrusage. The store is an SQLite file under $TMPDIR or /tmp.

      Examples:

        gate-bench admissions --in-flight 64 --seconds 5
        gate-bench registrations --in-flight 16 --seconds 5 --json

      Instructions per admission, as the difference of two runs that make the same claims:

        valgrind --tool=callgrind gate-bench admissions --minted 2000 --count 1000
        valgrind --tool=callgrind gate-bench admissions --minted 2000 --count 2000
      """,
    subcommands: [
      Admissions.self, Registrations.self, Refusals.self, Verifications.self, AndroidVerifications.self, Mint.self,
      Costs.self, StoreRounds.self, ConsolePages.self,
    ])
}

/// The options of both measurements.
struct BenchOptions: ParsableArguments {
  @Option(help: "The number of claims in flight.")
  var inFlight = 64

  @Option(help: "The time to measure in seconds, without the time in which claims are made.")
  var seconds = 5.0

  @Option(help: "Measure this number of claims in one round instead of a time.")
  var count: Int?

  @Option(help: "With --count: the number of claims to make before.")
  var minted: Int?

  @Flag(help: "Print ready on standard output when the claims are made, and wait for a line on standard input.")
  var wait = false

  @Flag(help: "Print one JSON object.")
  var json = false

  func validate() throws {
    guard inFlight > 0, seconds > 0, count ?? 1 > 0, minted ?? .max >= count ?? 1 else {
      throw ValidationError("numbers must be positive, and --minted at least --count")
    }
  }
}

struct Admissions: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Measures assertions of registered devices.")

  enum Entry: String, ExpressibleByArgument, CaseIterable { case gate, responder }

  @OptionGroup var options: BenchOptions

  @Option(help: "The number of devices that take turns; rounded up to a multiple of the claims in flight.")
  var devices = 1024

  @Option(help: "Where claims enter: the gate, or the responder in front of it, which reads requests.")
  var entry = Entry.gate

  func run() throws { try awaited { try await measure() } }

  private func measure() async throws {
    let rows = (devices + options.inFlight - 1) / options.inFlight
    let fleet = try await Fleet(of: rows * options.inFlight)
    let entrance: any Entrance =
      switch entry {
      case .gate: GateEntrance(fleet: fleet)
      case .responder: try ResponderEntrance(fleet: fleet)
      }
    try await Measurement(name: "admission", options: options, roundSize: 4096).run(
      through: entrance, tally: { fleet.bench.store.writeTally })
  }
}

struct Registrations: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Measures attestations of new devices, with receipts.")

  @OptionGroup var options: BenchOptions

  func run() throws { try awaited { try await measure() } }

  private func measure() async throws {
    let fleet = try await Fleet(of: 0)
    try await Measurement(name: "registration", options: options, roundSize: 512).run(
      through: RegistrarEntrance(fleet: fleet), tally: { fleet.bench.store.writeTally })
  }
}
