import ArgumentParser
import GateFixtures
import SQLiteStore

/// Measures what an admission or a registration costs at the gate's own entry: no sockets, but the whole gate behind
/// them, its store on disk and durable included.
@main
struct GateBenchmark: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gate-bench",
    abstract: "Measures admissions and registrations at the gate's own entry.",
    discussion: """
      What devices send is made before the clock starts, in rounds. CPU time is that of the whole process, user and \
      system, from getrusage. The store is an SQLite file under $TMPDIR or /tmp.

      Examples:

        gate-bench admissions --in-flight 64 --seconds 5
        gate-bench registrations --in-flight 16 --seconds 5 --json

      Instructions per admission, as the difference of two runs that make the same claims:

        valgrind --tool=callgrind gate-bench admissions --minted 2000 --count 1000
        valgrind --tool=callgrind gate-bench admissions --minted 2000 --count 2000
      """,
    subcommands: [
      Admissions.self, Registrations.self, Refusals.self, Verifications.self, Mint.self, StoreRounds.self,
    ])
}

/// What both measurements are told.
struct BenchOptions: ParsableArguments {
  @Option(help: "How many claims are on their way at once.")
  var inFlight = 64

  @Option(help: "For how long to measure, not counting the time in which claims are made.")
  var seconds = 5.0

  @Option(help: "Measure so many claims in one round instead of a time.")
  var count: Int?

  @Option(help: "With --count: how many claims to make before.")
  var minted: Int?

  @Flag(help: "Say ready on standard output when the claims are made, and wait for a line on standard input.")
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
  static let configuration = CommandConfiguration(abstract: "Assertions of registered devices.")

  enum Entry: String, ExpressibleByArgument, CaseIterable { case gate, responder }

  @OptionGroup var options: BenchOptions

  @Option(help: "How many devices take turns; rounded up to a multiple of the claims in flight.")
  var devices = 1024

  @Option(help: "Where claims come in: the gate, or the responder in front of it, which reads requests.")
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
  static let configuration = CommandConfiguration(abstract: "Attestations of new devices, receipts included.")

  @OptionGroup var options: BenchOptions

  func run() throws { try awaited { try await measure() } }

  private func measure() async throws {
    let fleet = try await Fleet(of: 0)
    try await Measurement(name: "registration", options: options, roundSize: 512).run(
      through: RegistrarEntrance(fleet: fleet), tally: { fleet.bench.store.writeTally })
  }
}
