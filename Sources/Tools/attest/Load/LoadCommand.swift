internal import ArgumentParser
internal import Commands

struct LoadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Put load on a gate or another TLS WebSocket server that echoes, and measure the time of answers.",
    discussion: """
      By default each connection repeatedly sends a message and waits until it has come back. The server must echo, as \
      `attest echo` does, or have an echo server behind it. Each connection is opened with a proof of a simulated \
      device; --open sends none, for a gate without enforcement and for other servers. --platform android makes \
      Android devices, and --device devices of the kind of a named one.

      With --rate, the time of an answer counts from the time at which its message was due, so a stall of the server \
      counts for all messages that had to wait. Exit status 1: sockets were lost, or messages came back changed. If \
      nothing succeeded, the status is that of the first failure, such as 77 for a refusal.

      Example:
        attest load wss://localhost:6200/ --authority DIR -c 32 -d 10s
        attest load wss://localhost:6200/ --authority DIR -c 100 -d 10s --rate 5000
        attest load wss://localhost:6200/ --authority DIR -c 8 -d 10s --connect
        attest load wss://localhost:6200/ --authority DIR -c 5000 -d 2m --storm --backoff
        attest load wss://127.0.0.1:8443/ --ca ca.pem --open -c 32 --size 16KiB
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The socket, like wss://localhost:6200/.")
  var url: String

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Connections; with --connect and --register, how many at a time.", valueName: "n"))
  var connections = 1

  @Option(
    name: [.short, .long], help: ArgumentHelp("The duration, such as 500ms or 2m; 10s by default.", valueName: "time"),
    transform: LoadDuration.init(parsing:))
  var duration = LoadDuration(seconds: 10)

  @Option(
    help: ArgumentHelp("The payload of a message, such as 16KiB; 64 by default.", valueName: "bytes"),
    transform: ByteCount.init(parsing:))
  var size = ByteCount(64)

  @Option(help: ArgumentHelp("Messages each connection sends, instead of a duration.", valueName: "n"))
  var messages: Int?

  @Option(help: ArgumentHelp("Messages per second over all connections, sent when due.", valueName: "n"))
  var rate: Double?

  @Flag(help: "Open, upgrade and close connections.")
  var connect = false

  @Flag(help: "Register new devices.")
  var register = false

  @Flag(help: "Keep the connections open for the duration and send nothing.")
  var idle = false

  @Flag(help: "Send on every connection until no more bytes are accepted, never read, and keep the connections open.")
  var stall = false

  @Flag(
    help: "Open a socket for each of as many devices, end all at one moment, and measure how all come back at once.")
  var storm = false

  @Flag(help: "With --storm, let a device that fails pause as the client library does.")
  var backoff = false

  @Option(
    help: ArgumentHelp(
      "With --storm, how many devices open a socket at the same time; all by default. Others wait for their turn.",
      discussion: """
        A phone has a processor of its own, and thousands of simulated ones share this computer's: while one waits for \
        it, the server ends its handshake.
        """, valueName: "n"))
  var atOnce: Int?

  @Flag(help: "Send no assertion.")
  var open = false

  @Flag(help: "Make every message different, and compare every byte that comes back.")
  var verify = false

  @Flag(help: "Report when all is open, work once for each line of input, and close at its end: for scripts.")
  var step = false

  var mode: LoadMode {
    if connect { return .connections }
    if register { return .registrations }
    if idle { return .idle }
    if stall { return .stall }
    if storm { return .storm(backsOff: backoff, atOnce: min(atOnce ?? connections, connections)) }
    return rate.map { .rate($0) } ?? .pingPong(limit: messages)
  }

  func validate() throws {
    guard [connect, register, idle, stall, storm, rate != nil, messages != nil].count(where: { $0 }) <= 1 else {
      throw ValidationError("--rate, --messages, --connect, --register, --idle, --stall and --storm exclude each other")
    }
    guard storm || !backoff else { throw ValidationError("--backoff goes with --storm") }
    guard storm || atOnce == nil else { throw ValidationError("--at-once goes with --storm") }
    guard atOnce.map({ $0 > 0 }) ?? true else { throw ValidationError("--at-once takes 1 or more") }
    guard !(register && open) else { throw ValidationError("--register and --open exclude each other") }
    guard !(verify && (rate != nil || connect || register || idle || stall || storm)) else {
      throw ValidationError("--verify goes with messages that wait for one another")
    }
    guard (1...100_000).contains(connections) else { throw ValidationError("--connections takes 1 to 100000") }
    guard rate.map({ (0.1...1_000_000).contains($0) }) ?? true else {
      throw ValidationError("--rate takes 0.1 to 1000000")
    }
    guard messages.map({ $0 > 0 }) ?? true else { throw ValidationError("--messages takes 1 or more") }
  }

  func run() async throws {
    DescriptorLimit.raise()
    let address = try GateURL(url)
    let options = open && options.ca != nil ? options : options.forGate(at: address)
    let authority = open ? nil : try options.loadAuthority()
    let target = try LoadTarget(
      engine: DeviceSession.makeEngine(), tls: options.makeTLS(), address: address, authority: authority,
      model: authority.map { authority throws(Failure) in try options.model(under: authority) })
    let plan = LoadPlan(
      mode: mode, connections: connections, duration: duration, size: size.bytes, verifies: verify,
      console: LoadConsole(isJSON: options.json, isStepped: step))
    try await LoadRun(plan, at: target).perform { plan.console.report($0, of: plan, at: url) }
  }
}
