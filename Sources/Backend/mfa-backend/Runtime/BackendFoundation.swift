internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import Logging
internal import MFADelivery
internal import MFADomain
internal import MFAService
internal import MFAStore
internal import Observability

/// What a running backend keeps from its start to its end, whatever a reload changes.
struct BackendFoundation: Sendable {
  let store: MeasuredStore
  /// The keys that the vault was opened with.
  let keys: KeyEncryptionKeys
  let vault: Vault
  let hub = NotificationHub()
  let outbox: QueuedOutbox
  let push: PushDelivery
  let exporter: AuditExporter
  let rateLimiter: RateLimiter
  let spent = SpentIdentities()
  let log: BackendLog
  let logger: Logger

  /// Opens the store and its vault.
  static func open(_ settings: BackendSettings, log: BackendLog) async throws -> BackendFoundation {
    let logger = log.logger()
    let store: MeasuredStore
    do {
      store = MeasuredStore(try settings.database.open(logger: settings.logsStatements ? logger : nil))
    } catch let fault as MFAStoreError {
      throw Failure(.unavailable, "the database: \(fault.reason)", hint: settings.database.hintOfFailure)
    }
    let keys = try settings.database.keys()
    let vault = try await Vault.open(in: store, with: keys, entropy: .system)
    if let began = vault.historyBegan, settings.database != .ephemeral {
      // Expected at the first start of a new database or a new version. At any other start, it means that the key was
      // removed.
      logger.warning("history key created", metadata: ["entry": .number(began), "key": "\(vault.historyKeys.newest)"])
    }
    return BackendFoundation(
      store: store, keys: keys, vault: vault, outbox: QueuedOutbox(phone: nil, email: nil, logger: logger),
      push: PushDelivery(forgettingIn: store, logger: logger),
      exporter: AuditExporter(AuditExports(store), logger: logger),
      rateLimiter: RateLimiter(limits: RateLimits(settings.limits), clock: .system), log: log, logger: logger)
  }

  /// A verifier of the gate's identities. Fetches nothing yet.
  func verifier(_ gate: BackendSettings.Gate) -> GateIdentityVerifier {
    GateIdentityVerifier(
      source: gate.source, issuer: gate.issuer, audience: gate.audience, store: store, spent: spent,
      logger: logger)
  }

  /// Everything that follows from `settings`. Reads all files that they name, and changes nothing but the beginning of
  /// a new requirement of a second factor in the store.
  func generation(
    _ settings: BackendSettings, _ verifier: GateIdentityVerifier
  ) async throws -> (generation: ServiceGeneration, providers: MessageProviders) {
    let providers = try settings.messageProviders()
    do throws(AuditExportFault) { try AuditExporter.check(.init(settings.audit)) } catch {
      throw Failure(
        .configuration, "audit.file: \(error.reason)", hint: "name a file in a folder that this user can write to")
    }
    if let file = settings.audit.authorityFile { try InputFile.require(file, "the syslog receiver's root file") }
    try settings.audit.webhook?.requireFiles()
    let identityTokens = try settings.provider?.tokens()
    let tokens = try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: settings.gate.audience)
    var policy = Policy(settings)
    try await policy.datePolicy(in: store, at: WallClock.system.now())
    let context = DomainContext(
      store: store, vault: vault, outbox: settings.texting == .log ? providers.log(logger) : outbox,
      tokens: tokens, policy: policy, hub: hub, provider: identityTokens, pushOutbox: push)
    let callers = CallerReader(
      gate: verifier, tokens: tokens, clock: .system, entropy: .system, logger: logger)
    let generation = ServiceGeneration(
      context: context, registry: OperationRegistry(context, logger: logger, rateLimiter: rateLimiter),
      callers: callers, tokens: tokens)
    return (generation, providers)
  }

  /// Applies the parts of `settings` that live outside the generation. Cannot fail.
  func apply(_ settings: BackendSettings, _ providers: MessageProviders) {
    outbox.replaceProviders(phone: providers.phone, email: providers.email)
    push.replaceProviders(providers.push)
    exporter.apply(.init(settings.audit))
    rateLimiter.replace(limits: RateLimits(settings.limits))
    log.setLevel(settings.logLevel)
  }
}

extension BackendSettings.Gate {
  /// The source of the gate's keys.
  var source: GateKeySource { GateKeySource(keys, authority: authorityFile) }
}

extension BackendSettings.Webhook {
  /// Reads the files once, to report a fault before they are used.
  func requireFiles() throws(Failure) {
    let bytes = try InputFile.readSecret(secretFile, "the secret file of webhooks")
    guard WebhookSecretFile.secrets(in: Array(bytes)) != nil else {
      throw Failure(
        .configuration, "webhooks.secret_file: \(secretFile) has no secrets, or a line that is not one",
        hint: WebhookSecretFile.hint)
    }
    if let authorityFile { try InputFile.require(authorityFile, "the root file of webhooks") }
  }
}

extension AuditExporter.Settings {
  init(_ settings: BackendSettings.AuditExports) {
    let target: SyslogTarget? =
      switch settings.syslog {
      case nil: nil
      case .local(let path): .local(path: path)
      case .server(.udp, let host, let port): .udp(host: host, port: port)
      case .server(.tcp, let host, let port): .tcp(host: host, port: port)
      case .server(.tls, let host, let port): .tls(host: host, port: port, authority: settings.authorityFile)
      }
    self.init(
      file: settings.file, largestFile: settings.largestFile, keptFiles: settings.keptFiles, syslog: target,
      facility: settings.facility,
      webhook: settings.webhook.map {
        WebhookTarget(
          url: $0.url, secretFile: $0.secretFile, authorityFile: $0.authorityFile, events: $0.events)
      })
  }
}
