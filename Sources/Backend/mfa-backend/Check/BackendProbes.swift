internal import AsyncHTTPClient
internal import Commands
internal import ConfigurationEngine
internal import ConsoleServing
internal import Wire
internal import Foundation
internal import Glibc
internal import HTTPClientTransport
internal import MFADelivery
internal import MFADomain
internal import MFAService
internal import MFAStore

/// Probes what a backend with valid settings needs. Changes nothing and sends no message.
struct BackendProbes {
  private let settings: BackendSettings
  private let diagnostics: ConfigurationDiagnostics<BackendSettings>
  private let proxies: ProxyVariables

  /// - Parameter diagnostics: Those of the settings, which know where each value comes from.
  init(
    _ settings: BackendSettings, _ diagnostics: ConfigurationDiagnostics<BackendSettings>,
    proxies: ProxyVariables = .ofProcess
  ) {
    self.settings = settings
    self.diagnostics = diagnostics
    self.proxies = proxies
  }

  private func passed(_ key: String, _ text: String) -> ProbeResult {
    ProbeResult(.passed, key, from: diagnostics.origin(of: key), text)
  }

  private func failed(_ key: String, _ text: String, hint: String) -> ProbeResult {
    ProbeResult(.failed, key, from: diagnostics.origin(of: key), text, hint: hint)
  }

  /// Runs all probes. None takes longer than about ten seconds, and they run at the same time.
  func run() async -> [ProbeResult] {
    async let store = self.store()
    async let gate = self.gate()
    async let sms = self.sms()
    async let mail = self.mail()
    async let provider = self.provider()
    async let apns = self.apns()
    async let fcm = self.fcm()
    async let places = self.places()
    return await [store, gate, sms, mail, apns, fcm, templates, provider].compactMap(\.self) + exports + network
      + console + places
  }

  /// The files of the console over TLS, which may run as another user.
  private var console: [ProbeResult] {
    guard let console = settings.console else { return [] }
    return ConsoleFiles(of: console).findings.map { finding in
      ProbeResult(
        finding.outcome, finding.key, from: diagnostics.origin(of: finding.key), finding.text, hint: finding.hint)
    }
  }

  /// How the servers that the backend asks by HTTP are reached, if the environment names a proxy.
  private var network: [ProbeResult] {
    var servers: [(key: String, url: String)] = []
    if case .url(let url, _) = settings.gate.source { servers.append(("gate.jwks", url)) }
    switch settings.texting {
    case .off, .log: break
    case .provider(let url, _, _, _): servers.append(("sms.url", url))
    case .template(let request): servers.append(("sms.http.url", request.origin))
    }
    if let apns = settings.push.apns {
      servers.append(("push.apns.key_file", apns.endpoint ?? APNSProvider.production))
    }
    if let fcm = settings.push.fcm { servers.append(("push.fcm.endpoint", fcm.endpoint)) }
    if let provider = settings.provider { servers.append(("oidc.issuer", provider.issuer)) }
    if let webhook = settings.audit.webhook { servers.append(("webhooks.url", webhook.url)) }
    // By http it is on loopback, which no proxy serves.
    if let provider = settings.console?.provider { servers.append(("admin.console.oidc.issuer", provider.issuer)) }
    return servers.compactMap { key, url in
      guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
        let scheme = ProxyVariables.Scheme(rawValue: parts.scheme?.lowercased() ?? ""),
        let port = UInt16(exactly: parts.port ?? (scheme == .https ? 443 : 80))
      else { return nil }
      do throws(ProxyVariableError) {
        let summary = try proxies.summary(for: scheme, host: host, port: port)
        return summary.map { passed(key, "\(host) is \($0)") }
      } catch {
        return failed(key, "\(error.variable): \(error.reason)", hint: error.hint)
      }
    }
  }

  private func store() async -> ProbeResult? {
    guard let archive = StoreArchive(settings.database) else { return nil }
    do throws(MFAStoreError) {
      let state = try archive.schema()
      if state.version == 0 {
        guard let fault = try archive.creationFault() else {
          return passed("database", "empty, run creates its tables")
        }
        return failed(
          "database", "its file cannot be created: \(fault)", hint: "create the folder, and let this user write to it")
      }
      if state.version > state.newest {
        return failed(
          "database", "its tables have version \(state.version), this mfa-backend knows \(state.newest)",
          hint: "use the mfa-backend version that runs on this database, or a newer one")
      }
      guard state.isCurrent else {
        return passed("database", "its tables have version \(state.version), run migrates them to \(state.newest)")
      }
    } catch {
      return failed("database", error.reason, hint: settings.database.hintOfFailure)
    }
    return await unsealing()
  }

  /// Opens the data keys with the keys file.
  private func unsealing() async -> ProbeResult {
    do {
      let store = try settings.database.openExisting()
      _ = try await Vault.historyKeys(in: store, with: try settings.database.keys())
      return passed("database", "current, and the keys file opens its keys")
    } catch let fault as Vault.Unopenable {
      return failed(
        "keys_file", fault.reason, hint: "the keys file must contain every key that still seals a data key")
    } catch {
      return failed(
        "database", (error as? MFAStoreError)?.reason ?? Failure(of: error).message,
        hint: settings.database.hintOfFailure)
    }
  }

  private func gate() async -> ProbeResult? {
    do throws(GateKeySource.FetchError) {
      let count = try await settings.gate.source.probe()
      return passed("gate.jwks", "\(count) \(count == 1 ? "key" : "keys")")
    } catch {
      return failed("gate.jwks", "\(error)", hint: "start the gate, and check gate.jwks and gate.ca_file")
    }
  }

  private func sms() async -> ProbeResult? {
    guard let provider = try? settings.smsProvider() else { return nil }
    do throws(DeliveryFailure) {
      try await provider.probe()
      if case .template(let request) = settings.texting {
        return passed("sms.http.url", "\(request.origin) answers; no SMS was sent, so the credentials are not proved")
      }
      return passed("sms.account", "the server answers")
    } catch {
      if case .template = settings.texting {
        return failed("sms.http.url", error.reason, hint: "check sms.http.url and sms.http.ca_file")
      }
      return failed("sms.account", error.reason, hint: "check sms.url, sms.account and sms.token_file")
    }
  }

  private func mail() async -> ProbeResult? {
    guard let provider = try? settings.mailProvider() else { return nil }
    do throws(DeliveryFailure) {
      try await provider.probe()
      return passed("email.smtp", "the server answers with TLS to EHLO \(provider.greeting)")
    } catch {
      return failed(
        "email.smtp", error.reason,
        hint:
          "check email.smtp, email.tls, email.ca_file, email.user and its file, and email.ehlo (\(provider.greeting))")
    }
  }

  /// Where entries of the history are copied to. Syslog has no question that a receiver answers.
  private var exports: [ProbeResult] {
    let audit = settings.audit
    let size = audit.largestFile.map { "renamed from \(Size.text($0)) on, \(audit.keptFiles) kept" } ?? "not renamed"
    return [
      audit.file.map { passed("audit.file", "\($0) can be written; \(size)") },
      audit.webhook.map {
        passed(
          "webhooks.url",
          "\(WebhookTarget.place(of: $0.url)) gets \($0.events.isEmpty ? "all new entries" : "new entries of \($0.events.count) events"); "
            + "none was sent, so it is not proved")
      },
      audit.syslog.map { passed("audit.syslog", "\($0) gets new entries; no message was sent, so it is not proved") },
    ].compactMap(\.self)
  }

  /// The templates of messages, which the check of the files has read before.
  private var templates: ProbeResult? {
    guard settings.templates != nil, let templates = try? settings.messageTemplates() else { return nil }
    let languages = templates.languages.isEmpty ? "" : ", also for " + templates.languages.joined(separator: ", ")
    return passed(
      "messages.templates", "\(templates.count) \(templates.count == 1 ? "template" : "templates")\(languages)")
  }

  private func provider() async -> ProbeResult? {
    guard let provider = settings.provider else { return nil }
    guard let fault = await ProviderTokens.fault(of: provider.issuer, authorityFile: provider.authorityFile) else {
      return passed("oidc.issuer", "the provider publishes its metadata")
    }
    return failed("oidc.issuer", fault, hint: "check oidc.issuer and oidc.ca_file")
  }

  // MARK: Addresses

  private func places() async -> [ProbeResult] {
    let isRunning = await self.isRunning
    let listed: [(String, ListenPlace?)] = [
      ("listen", settings.listen), ("metrics.listen", settings.metrics),
      ("admin.listen", settings.admin.map { .unix(path: $0.path) }),
    ]
    return listed.compactMap { key, place in place.map { probe(key, $0, isRunning) } }
  }

  /// Whether a backend answers at the admin socket. Then it may be the one that uses the addresses.
  private var isRunning: Bool {
    get async {
      guard let admin = settings.admin else { return false }
      return (try? await AdminClient(admin).send("GET", "/v1/status", BackendStatus.self, patience: .seconds(3))) != nil
    }
  }

  private func probe(_ key: String, _ place: ListenPlace, _ isRunning: Bool) -> ProbeResult {
    switch place.bindingFault {
    case nil: passed(key, "\(place) is free")
    case EADDRINUSE? where isRunning: passed(key, "\(place) is used by the running backend")
    case let number?:
      failed(
        key, "cannot listen at \(place): \(String(cString: strerror(number)))",
        hint:
          "stop the process that listens there, or choose another address; systemctl status mfa-backend.socket tells"
          + " whether systemd listens for a backend that does not run")
    }
  }
}

// MARK: Push services

extension BackendProbes {
  private func apns() async -> ProbeResult? {
    guard let apns = settings.push.apns, let provider = try? settings.provider(apns) else { return nil }
    return await probe(
      provider, "push.apns.key_file",
      hint: "check push.apns.key_id and push.apns.team_id, and that the key has the service APNs")
  }

  private func fcm() async -> ProbeResult? {
    guard let fcm = settings.push.fcm, let provider = try? settings.provider(fcm) else { return nil }
    return await probe(
      provider, "push.fcm.service_account_file",
      hint: "check that the API of Firebase Cloud Messaging is enabled, and that the key of the account was not revoked"
    )
  }

  private func probe(_ provider: some PushProvider, _ key: String, hint: String) async -> ProbeResult {
    do throws(PushFailure) {
      return passed(key, "\(try await provider.probe()); no device got anything")
    } catch {
      return failed(key, error.reason, hint: hint)
    }
  }
}
