internal import ACME
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import GateService
internal import Locking
internal import Logging
internal import Observability
internal import PostgresStore
internal import Settings
internal import TransportEngine

/// The certificate that the gate obtains by itself, and the challenges that its listener answers. It lives as long as
/// the process: a reload keeps the certificate.
final class ManagedCertificates: Sendable {
  private struct State: Sendable {
    var material: CertificateMaterial?
    var status: CertificateStatus?
    var lastSuccess: Timestamp?
    var isConfigured = false
    /// Whether the last attempt to prepare ACME succeeded.
    var isPrepared = true
    /// The challenges that are answered now.
    var answers = ListenerChallenges()
    /// The names of the certificate, in the form of URLs: an IPv6 address has brackets.
    var hosts: Set<String> = []
  }

  /// Answers challenges in the listener's handshakes.
  let challenges = ChallengeResponder()
  private let state = LockedValue(State())
  private let certificates: CounterFamily
  private let failures: CounterFamily

  private enum Origin: String, CaseIterable { case ordered, otherGate = "other_gate" }

  init(metrics: GateMetrics) {
    certificates = metrics.registry.counters(
      "sallyport_acme_certificates_total", "Certificates obtained by ACME: ordered here, or by another gate.",
      labels: ["origin"])
    failures = metrics.registry.counters(
      "sallyport_acme_failures_total", "Failed attempts to obtain a certificate by ACME.", labels: ["code"])
    registerTimes(in: metrics.registry)
  }

  private func registerTimes(in registry: MetricsRegistry) {
    registry.values(
      "sallyport_acme_last_success_timestamp_seconds", "When this gate last got a certificate by ACME."
    ) { [weak self] in
      self?.state.withLock(\.lastSuccess).map { [Sample(Double($0.seconds))] } ?? []
    }
    registry.values(
      "sallyport_acme_next_attempt_timestamp_seconds", "When the next certificate will be ordered by ACME."
    ) { [weak self] in
      self?.state.withLock(\.status)?.nextAttempt.map { [Sample(Double($0.seconds))] } ?? []
    }
    registry.values(
      "sallyport_acme_certificate_missing", "1 while the listener waits for its first certificate by ACME, else 0."
    ) { [weak self] in
      guard let state = self?.state.withLock(\.self), state.isConfigured else { return [] }
      return [Sample(state.material == nil ? 1 : 0)]
    }
  }

  /// What the listener presents: nothing before the first certificate.
  var material: [CertificateMaterial] { state.withLock { $0.material.map { [$0] } ?? [] } }

  /// What is known about the certificate; `nil` without ACME.
  var status: CertificateStatus? { state.withLock { $0.isConfigured ? $0.status ?? CertificateStatus() : nil } }

  /// Whether the listener has no certificate yet. The text says why.
  var wait: String? {
    state.withLock { state in
      guard state.isConfigured, state.material == nil else { return nil }
      let reason = state.status?.lastFailure.map { ": \($0.text)" } ?? ""
      let next = state.status?.nextAttempt.map { "; next attempt at \($0.wholeSecond)" } ?? ""
      return "waiting for the first certificate\(reason)\(next)"
    }
  }

  /// Takes over a certificate, to be served by the listener's next configuration.
  func adopt(_ certificate: IssuedCertificate) {
    state.withLock { state in
      // A keeper that was cancelled may finish its step after a reload to certificate files.
      if state.isConfigured { state.material = CertificateMaterial(certificate) }
    }
  }

  /// Serves the files of an earlier configuration until the first certificate arrives.
  func standIn(_ material: CertificateMaterial) {
    state.withLock { state in
      if !state.isConfigured || state.material == nil { state.material = material }
    }
  }

  /// Begins or ends the use of ACME. All counters exist from then on, so that an alert sees the first failure.
  ///
  /// The end forgets the certificate: it may have expired by the time when ACME is used again.
  func configure(_ settings: GateSettings) {
    state.withLock { state in
      state.isConfigured = settings.tls.acme != nil
      state.hosts = Set((settings.tls.acme?.domains ?? []).map { $0.contains(":") ? "[\($0)]" : $0 })
      if !state.isConfigured { (state.material, state.status) = (nil, nil) }
    }
    guard settings.tls.acme != nil else { return }
    for origin in Origin.allCases { _ = certificates.counter(origin.rawValue) }
    for code in ACMEError.codes { _ = failures.counter(code) }
  }

  /// Answers exactly these challenges from now on.
  func answer(_ answers: ListenerChallenges, logger: Logger) {
    guard state.withLock({ $0.answers != answers }) else { return }
    do {
      var certificates: [String: CertificateMaterial] = [:]
      for (name, digest) in answers.digests {
        let (certificate, key) = try ChallengeCertificate.make(for: name, digest: digest, at: .now())
        certificates[ChallengeCertificate.serverName(for: name)] = CertificateMaterial(
          chainPEM: certificate, keyPEM: key)
      }
      try challenges.answer(certificates)
      // Only now: after a failure, an equal call tries again.
      state.withLock { $0.answers = answers }
    } catch {
      logger.error("ACME challenge not answered", metadata: ["reason": "\(error)"])
    }
  }

  /// The answer to the HTTP-01 challenge of `token`; `nil` if there is none now.
  func keyAuthorization(of token: String) -> String? { state.withLock { $0.answers.keyAuthorizations[token] } }

  /// The name of the certificate that `authority`, a value of `Host`, names with or without a port; `nil` for others.
  func servedHost(in authority: String) -> String? {
    let isBracketed = authority.hasPrefix("[")
    let end = isBracketed ? authority.firstIndex(of: "]").map(authority.index(after:)) : authority.firstIndex(of: ":")
    let host = authority[..<(end ?? authority.endIndex)].lowercased()
    return state.withLock { $0.hosts.contains(host) } ? host : nil
  }

  func note(_ status: CertificateStatus) {
    state.withLock { if $0.isConfigured { $0.status = status } }
  }

  /// Notes that no certificate can be obtained before `next`, because a file of `tls.acme` cannot be used.
  func noteUnprepared(_ error: Failure, until next: Timestamp) {
    let failure = RenewalPlan.Failure(code: Self.storage, text: error.report(separator: "\n"), at: .now())
    failures.counter(failure.code).add()
    state.withLock { state in
      guard state.isConfigured else { return }
      var status = state.status ?? CertificateStatus()
      (status.lastFailure, status.nextAttempt) = (failure, next)
      state.status = status
      state.isPrepared = false
    }
  }

  /// Notes that the files of `tls.acme` were read.
  func notePrepared() { state.withLock { $0.isPrepared = true } }

  /// Whether ACME could be prepared. If not, a reload prepares it at once.
  var isPrepared: Bool { state.withLock(\.isPrepared) }

  /// The code of failures to read or write, as `ACMEError` has it.
  private static let storage = ACMEError.storage(reason: "").code

  func count(_ event: CertificateEvent) {
    switch event {
    case .obtained(_, let byOtherGate, _):
      certificates.counter((byOtherGate ? Origin.otherGate : .ordered).rawValue).add()
      state.withLock { $0.lastSuccess = .now() }
    case .failed(let error, _, _, _), .storageFailed(let error), .damaged(let error):
      failures.counter(error.code).add()
    case .accountMade, .ordering, .learned, .clocksDiffer, .recordNotRemoved: break
    }
  }
}

extension CertificateMaterial {
  init(_ certificate: IssuedCertificate) {
    self.init(chainPEM: certificate.chainPEM, keyPEM: certificate.keyPEM)
  }
}

extension GateSettings.TLS.ACME {
  /// What to order, and where.
  func orderSettings() throws(Failure) -> CertificateOrderSettings {
    var external: ExternalAccountBinding?
    if let binding {
      do throws(StartError) {
        external = ExternalAccountBinding(keyID: binding.keyID, key: try Self.bindingKey(in: binding.keyFile))
      } catch {
        throw Failure(error)
      }
    }
    var order = CertificateOrderSettings(directory: directory, names: domains, email: email, binding: external)
    order.challenge = proof.kind
    order.profile = profile
    order.usesCommonName = usesCommonName
    return order
  }

  private static func bindingKey(in file: String) throws(StartError) -> String {
    let setting = "tls.acme.eab.key_file"
    guard let key = BindingKeyFile.key(in: try SettingFile.content(of: file, for: setting)) else {
      throw StartError(
        setting, "\(file) contains no key in base64url", hint: "write the key to it as the authority shows it")
    }
    return key
  }
}

extension GateSettings.TLS.ACME.Proof {
  var kind: ChallengeKind {
    switch self {
    case .tlsALPN: .tlsALPN
    case .http: .http
    case .dns: .dns
    }
  }

  /// What writes the records of DNS-01; `nil` for other challenges.
  var records: (any ChallengeRecords)? {
    guard case .dns(let records, let wait) = self else { return nil }
    return switch records {
    case .hook(let program): RecordHook(program: program, wait: wait)
    case .server(let server, let keyFile):
      DynamicUpdates(host: server.host, port: server.port, keyFile: keyFile, wait: wait)
    }
  }
}

extension GateSettings {
  /// Where account and certificates are kept: in a shared store, or in a folder next to the SQLite file.
  func certificateStorage(_ store: any GateStore) -> any CertificateStorage {
    switch self.store {
    case .sqlite(let path):
      let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
      return CertificateFolder(path: "\(folder)/acme")
    case .postgres:
      // The store of these settings is a PostgresStore; a test's stand-in may share nothing.
      guard let documents = store as? any SharedDocuments else { return NoDocuments(place: store.place) }
      return StoreDocuments(documents: documents, feed: store)
    }
  }
}
