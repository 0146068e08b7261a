internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import MFADomain
internal import MFAService

/// Serves until SIGTERM, SIGINT or a drain request.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serves until SIGTERM, SIGINT or mfa-backend drain.",
    discussion: """
      SIGHUP reloads the configuration, as mfa-backend reload does. Without the gate's keys the backend answers 503 and \
      fetches them until the gate answers.

      Flags override variables (MFA_BACKEND_LISTEN, MFA_BACKEND_GATE__JWKS), and variables override the file. Requests \
      to gate, provider and SMS server use HTTPS_PROXY, http_proxy, ALL_PROXY and NO_PROXY.

      Examples:

        mfa-backend run -c /etc/mfa/mfa.yaml

        mfa-backend run --database sqlite:///var/lib/mfa/mfa.db \\
          --keys /etc/mfa/keys.json --gate-issuer https://gate:6200 \\
          --gate-jwks https://gate:6200/.well-known/sallyport/jwks.json \\
          --audience mfa
      """)

  @OptionGroup var database: DatabaseOptions

  @Option(help: "Where to listen: ADDRESS:PORT on loopback, or unix:/path.")
  var listen: String?

  @Option(name: .customLong("gate-jwks"), help: "The gate's keys: a file, an https URL, or an http URL on loopback.")
  var gateKeys: String?

  @Option(name: .customLong("gate-ca"), help: "PEM file with the roots that verify the gate's URL.")
  var gateAuthority: String?

  @Option(name: .customLong("gate-issuer"), help: "The issuer of the gate's identities.")
  var gateIssuer: String?

  @Option(help: "The audience of the gate's identities.")
  var audience: String?

  @Option(name: .customLong("admin"), help: "The Unix socket of the operator commands: unix:/path.")
  var admin: String?

  @Option(
    name: .customLong("metrics"), help: "Address of /metrics, /livez and /readyz: ADDRESS:PORT on loopback.")
  var metrics: String?

  @Option(help: "The lowest level that is logged: debug, info, notice, warning or error.")
  var logLevel: String?

  @Flag(name: .customLong("log-sql"), help: "Log SQL statements at debug, without values.")
  var logsStatements = false

  @OptionGroup var delivery: DeliveryOptions
  @OptionGroup var push: PushOptions

  @OptionGroup var webAuthn: WebAuthnOptions

  @OptionGroup var provider: ProviderOptions

  @OptionGroup var limits: LimitOptions

  private var flags: [FlagSetting] {
    [
      FlagSetting("--listen", "listen", listen), FlagSetting("--gate-jwks", "gate.jwks", gateKeys),
      FlagSetting("--gate-ca", "gate.ca_file", gateAuthority), FlagSetting("--gate-issuer", "gate.issuer", gateIssuer),
      FlagSetting("--audience", "gate.audience", audience), FlagSetting("--admin", "admin.listen", admin),
      FlagSetting("--metrics", "metrics.listen", metrics),
      FlagSetting("--log-level", "log.level", logLevel),
      FlagSetting("--log-sql", "log.sql", logsStatements ? "on" : nil),
    ].compactMap(\.self) + delivery.flags + push.flags + webAuthn.flags + provider.flags + limits.flags
  }

  func run() async throws {
    let log = BackendLog()
    defer { log.flush() }
    let reader = database.reader(with: flags)
    let server = BackendServer(reader, log: log)
    do {
      let diagnostics = reader.examine()
      guard let settings = diagnostics.settings else { throw ConfigurationErrors(faults: diagnostics.faults) }
      try await server.serve(settings, warnings: diagnostics.warnings)
    } catch let fault where Failure(of: fault).status == .noInput {
      // A file that the configuration names is a fault of the configuration, with its place, as for `check`. A service
      // manager does not start again after such a fault.
      let faults = FileCheck.judged(reader.examine()).faults
      throw faults.isEmpty ? fault : ConfigurationErrors(faults: faults)
    }
  }
}

extension MFAServer.Address {
  init(_ place: ListenPlace) {
    switch place {
    case .tcp(let host, let port): self = .tcp(host: host, port: port)
    case .unix(let path): self = .unix(path: path)
    }
  }
}

extension Policy {
  init(_ settings: BackendSettings) {
    self.init()
    domain = settings.domain
    issuer = settings.issuer
    secondFactorPolicy = SecondFactorPolicy(rawValue: settings.policy.secondFactorFor) ?? .everyone
    gracePeriod = settings.policy.gracePeriod
    allowsBiometricGate = settings.policy.allowsBiometricGate
    mostDevices = settings.policy.mostDevices
    relyingParty = settings.webAuthn.map(RelyingParty.init)
    recoveryWait = settings.policy.recoveryWait
    stepUpScore = settings.policy.stepUpScore
    bindsTrustToNetwork = settings.policy.bindsTrustToNetwork
    deviceUnlock = Unlock(rawValue: settings.policy.deviceUnlock) ?? .biometric
    vouchesForDeviceKeys = settings.policy.vouchesForDeviceKeys
    mostAccountsOfInstance = settings.limits.accountsOfKey
    mostMessages = settings.limits.messagesPerHour
    mostMessagesOfAddress = settings.limits.messagesPerHourOfAddress
    mostMessagesOfInstance = settings.limits.messagesPerHourOfKey
    pushServices = Set([settings.push.apns.map { _ in .apns }, settings.push.fcm.map { _ in .fcm }].compactMap(\.self))
    pushesNotices = settings.push.includesNotices
  }
}
