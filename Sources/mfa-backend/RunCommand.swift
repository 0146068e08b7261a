internal import ArgumentParser
internal import JSONLog
internal import Logging
internal import MFADelivery
internal import MFADomain
internal import MFAService
internal import MFAStore
internal import MFATokens
internal import ServiceLifecycle
internal import UnixSignals

/// Serves until it is told to stop.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serves until SIGTERM or SIGINT.",
    discussion: """
      Example:

        mfa-backend run --database sqlite:///var/lib/mfa/mfa.db --keys /etc/mfa/keys.json \
      --gate-jwks https://gate:6200/.well-known/sallyport/jwks.json --gate-issuer https://gate:6200 --audience mfa
      """)

  @OptionGroup var database: DatabaseOptions

  @Option(help: "Where to listen: ADDRESS:PORT on loopback, or unix:/path.")
  var listen = "127.0.0.1:8080"

  @Option(name: .customLong("gate-jwks"), help: "The gate's keys: a URL or a file.")
  var gateKeys: String

  @Option(name: .customLong("gate-ca"), help: "PEM file with the roots that the gate's URL is checked against.")
  var gateAuthority: String?

  @Option(name: .customLong("gate-issuer"), help: "What the gate's identities have as issuer.")
  var gateIssuer: String

  @Option(help: "What the gate's identities have as audience.")
  var audience: String

  @OptionGroup var delivery: DeliveryOptions

  func run() async throws {
    let sink = LineSink(descriptor: 2)
    let logger = Logger(label: "mfa-backend") { JSONLineHandler(label: $0, sink: sink) }
    defer { sink.flush() }
    let address = try ListenAddress(listen).address
    let store = try database.open()
    let vault = try await Vault.open(in: store, with: try database.keys(), entropy: .system)
    let gate = GateIdentityVerifier(
      source: GateKeySource(gateKeys, authority: gateAuthority), issuer: gateIssuer, audience: audience, logger: logger)
    try await gate.prepare()
    let tokens = try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: audience)
    let (outbox, carriers) = try delivery.outbox(logger)
    var policy = Policy()
    policy.domain = delivery.domain
    let premises = Premises(store: store, vault: vault, outbox: outbox, tokens: tokens, policy: policy)
    let server = MFAServer(
      premises: premises, registry: OperationRegistry(premises, logger: logger),
      callers: CallerReader(gate: gate, tokens: tokens, clock: .system, entropy: .system, logger: logger),
      tokens: tokens, address: address, logger: logger,
      didBind: { port in logger.info("listening", metadata: ["port": "\(port ?? 0)"]) })
    try await ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: carriers + [HousekeepingService(housekeeping: Housekeeping(premises), logger: logger), server],
        gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    ).run()
  }
}

/// Where the server listens: on loopback or a Unix socket, since it speaks without TLS to the gate alone.
struct ListenAddress {
  let address: MFAServer.Address

  init(_ text: String) throws {
    if text.hasPrefix("unix:/") {
      address = .unix(path: String(text.dropFirst("unix:".count)))
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      throw ValidationError("--listen \(text): write ADDRESS:PORT or unix:/path")
    }
    let host = text[..<colon].trimming(["[", "]"])
    guard host == "::1" || host == "localhost" || host.hasPrefix("127.") else {
      throw ValidationError("--listen \(text): only loopback addresses and Unix sockets, since there is no TLS here")
    }
    address = .tcp(host: host, port: Int(port))
  }
}

extension Substring {
  fileprivate func trimming(_ characters: Set<Character>) -> String {
    var rest = self
    while let first = rest.first, characters.contains(first) { rest.removeFirst() }
    while let last = rest.last, characters.contains(last) { rest.removeLast() }
    return String(rest)
  }
}
