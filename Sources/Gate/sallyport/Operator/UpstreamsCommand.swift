internal import ArgumentParser
internal import Commands
internal import GateRuntime
internal import GateService

/// The parent of the commands for the servers of the routes.
struct UpstreamsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upstreams",
    abstract: "Lists the servers of the routes, and takes one of several out of service.",
    discussion: """
      Each gate has its own view of the servers. The gate needs an admin server: admin.listen.

      Example:

        sallyport upstreams list
      """,
    subcommands: [UpstreamsListCommand.self, UpstreamsDrainCommand.self, UpstreamsResumeCommand.self])
}

struct UpstreamsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists the servers of the routes.",
    discussion: """
      Prints a table on a terminal, otherwise tab-separated lines: route, server, condition, open sessions, failures. A \
      server that could not be connected to rests, and gets no session for a while. With --json, one line of JSON per \
      server.

      Example:

        sallyport upstreams list
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var format: ResultFormat

  func run() async throws {
    let listing = try await configuration.client().send("GET", "/v1/upstreams", UpstreamListing.self)
    guard !format.json else {
      for server in listing.upstreams { JSONOutput.print(server) }
      return
    }
    var table = Table(
      [
        .init(heading: "ROUTE", loss: .middle), .init(heading: "SERVER", loss: .middle), .init(heading: "CONDITION"),
        .init(heading: "SESSIONS"), .init(heading: "FAILURES"),
      ], whenEmpty: "no routes")
    table.print(
      listing.upstreams.map { server in
        [
          server.route ?? "-", server.upstream, server.condition.rawValue, server.sessions.map(String.init) ?? "-",
          "\(server.failures)",
        ]
      })
    table.end()
  }
}

/// The server that a command works on.
struct UpstreamArguments: ParsableArguments {
  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var format: ResultFormat

  @Argument(help: "The server, as the list shows it: ws://10.0.0.7:8080.")
  var upstream: String

  @Option(help: "The path of its route, if several routes have the server.")
  var route: String?

  /// Sends the request and prints the state of the server.
  func change(_ path: String, _ text: (UpstreamServerState) -> String) async throws {
    let query = Query(("upstream", upstream), ("route", route))
    let state = try await configuration.client().send("POST", path + query.text, UpstreamServerState.self)
    format.print(text(state), state)
  }
}

struct UpstreamsDrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain",
    abstract: "Sends a server no new sessions; open ones stay.",
    discussion: """
      The last server of a route cannot be drained. A restart or an upgrade of the gate forgets it, a reload does not.

      Example: before maintenance of a server

        sallyport upstreams drain ws://10.0.0.7:8080
      """)

  @OptionGroup var arguments: UpstreamArguments

  func run() async throws {
    try await arguments.change("/v1/upstreams/drain") { state in
      let count = state.sessions ?? 0
      return
        "\(state.upstream) of \(state.route ?? "/") gets no new sessions; \(count) \(count == 1 ? "is" : "are") open"
    }
  }
}

struct UpstreamsResumeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Sends a drained server sessions again, a growing share in the first half minute.",
    discussion: """
      Example:

        sallyport upstreams resume ws://10.0.0.7:8080
      """)

  @OptionGroup var arguments: UpstreamArguments

  func run() async throws {
    try await arguments.change("/v1/upstreams/resume") { "\($0.upstream) of \($0.route ?? "/") gets sessions again" }
  }
}
