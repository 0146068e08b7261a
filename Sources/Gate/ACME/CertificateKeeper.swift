public import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import Transport

/// What happened to a certificate, for the log and the metrics.
public enum CertificateEvent: Sendable, Hashable {
  case accountMade(url: String)
  /// A certificate is being ordered. `renewing` is the end of the one that it replaces.
  case ordering(renewing: Timestamp?)
  /// A certificate was ordered here, or by another gate that shares the storage.
  case obtained(IssuedCertificate, byOtherGate: Bool, renewal: Timestamp)
  case failed(ACMEError, attempts: Int, retry: Timestamp, hasCertificate: Bool)
  case learned(RenewalWindow, renewal: Timestamp)
  /// The server's clock minus this machine's.
  case clocksDiffer(Duration)
  /// The storage cannot be read or written. Reported when it begins, and every hour while it lasts.
  case storageFailed(ACMEError)
  /// The stored certificate cannot be used. Reported once until another one is stored; a new one is ordered.
  case damaged(ACMEError)
}

/// What is known about a certificate.
public struct CertificateStatus: Sendable, Hashable {
  /// `nil` before the first one.
  public var certificate: IssuedCertificate?
  /// When this gate obtained or adopted the certificate; for one that was stored, the beginning of its validity.
  public var obtainedAt: Timestamp?
  /// When it will be renewed, or when the next attempt is.
  public var nextAttempt: Timestamp?
  public var lastFailure: RenewalPlan.Failure?
  public var window: RenewalWindow?

  public init() {}
}

/// Keeps one certificate valid: orders it, stores it, and renews it in time.
///
/// Gates that share the storage each have a keeper. One of them orders, and all serve.
public actor CertificateKeeper {
  /// What the keeper tells the gate.
  public struct Listener: Sendable {
    /// Serves a certificate from now on, and returns whether that worked. If not, it is called again later.
    public var serve: @Sendable (IssuedCertificate) async -> Bool
    /// Answers exactly these challenges from now on: the digest of each name.
    public var answer: @Sendable ([String: [UInt8]]) -> Void
    public var note: @Sendable (CertificateEvent) -> Void
    public var status: @Sendable (CertificateStatus) -> Void

    public init(
      serve: @escaping @Sendable (IssuedCertificate) async -> Bool,
      answer: @escaping @Sendable ([String: [UInt8]]) -> Void,
      note: @escaping @Sendable (CertificateEvent) -> Void = { _ in },
      status: @escaping @Sendable (CertificateStatus) -> Void = { _ in }
    ) {
      (self.serve, self.answer, self.note, self.status) = (serve, answer, note, status)
    }
  }

  /// The world as the keeper sees it.
  public struct Surroundings: Sendable {
    public var clock = WallClock.system
    public var random: @Sendable () -> Double = { Double.random(in: 0...1) }
    public var sleep: @Sendable (Duration) async throws(CancellationError) -> Void = {
      duration throws(CancellationError) in
      do { try await Task.sleep(for: duration) } catch { throw CancellationError() }
    }
    public var backoff = RenewalPlan.Backoff.standard
    /// How often a shared storage is read.
    public var interval = Duration.seconds(3)

    public init() {}
  }

  private let settings: CertificateOrderSettings
  private let client: ACMEClient
  private let storage: any CertificateStorage
  private let listener: Listener
  private let world: Surroundings
  private var status = CertificateStatus()
  /// Whether the server recommends when to renew; `nil` before its directory was read.
  private var offersInformation: Bool?
  private var storageFault: ACMEError?
  /// When `storageFault` is reported again.
  private var nextReport: Timestamp?
  /// What is wrong with the stored certificate.
  private var damage: RenewalPlan.Failure?
  /// When the listener failed to present the certificate of `status`; `nil` if it presents it.
  private var servingFailed: Timestamp?
  /// Whether the listeners answer the challenges of this keeper's own order.
  private var isOrdering = false
  /// Whether the storage was read before. What is there at the first time is no news.
  private var hasRead = false
  /// The plan, while it cannot be stored.
  private var unsaved: RenewalPlan?

  public init(
    _ settings: CertificateOrderSettings, client: ACMEClient, storage: any CertificateStorage, listener: Listener,
    surroundings: Surroundings = Surroundings()
  ) {
    (self.settings, self.client, self.storage) = (settings, client, storage)
    (self.listener, world) = (listener, surroundings)
  }

  /// Reads the stored certificate; `nil` if there is none for these names.
  public static func stored(
    _ settings: CertificateOrderSettings, in storage: any CertificateStorage
  ) async throws(ACMEError) -> IssuedCertificate? {
    let document = CertificateDocument(scope: settings.certificateScope, kind: .certificate)
    guard let content = try await storage.content(of: document) else { return nil }
    do throws(IssuedCertificate.Malformed) {
      return try certificate(in: content, for: settings)
    } catch {
      throw .storage(reason: "\(document.name) is damaged: \(error)")
    }
  }

  /// Runs until the task is cancelled.
  public func run() async {
    let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let notices = Task { [storage] in
      for await _ in storage.notices() { wake.yield() }
    }
    defer { notices.cancel() }
    var iterator = wakes.makeAsyncIterator()
    while !Task.isCancelled {
      let pause = await step()
      let alarm = Task { [sleep = world.sleep] in
        try? await sleep(pause)
        wake.yield()
      }
      await withTaskCancellationHandler {
        _ = await iterator.next()
      } onCancel: {
        wake.finish()
      }
      alarm.cancel()
    }
  }

  /// Does what is due now, and returns how long there is nothing to do.
  public func step() async -> Duration {
    let now = world.clock.now()
    do throws(ACMEError) {
      let plan = try await refresh()
      switch action(of: plan, at: now) {
      case .wait(let until):
        storageFault = nil
        note(plan)
        return pause(until: until)
      case .order, .askForRenewalInformation:
        guard try await storage.lock(settings.certificateScope) else { return world.interval }
        do throws(ACMEError) {
          try await act()
        } catch {
          await storage.unlock(settings.certificateScope)
          throw error
        }
        await storage.unlock(settings.certificateScope)
        storageFault = nil
        return .zero
      }
    } catch {
      report(error, at: now)
      return shortPause
    }
  }

  /// The time until the storage is tried again.
  private var shortPause: Duration { max(world.interval, .seconds(5)) }

  private func report(_ error: ACMEError, at now: Timestamp) {
    // Hourly, so that an alert on the counter stays on.
    if storageFault != error || nextReport.map({ $0 <= now }) ?? true {
      listener.note(.storageFailed(error))
      nextReport = now.advanced(by: .seconds(3600))
    }
    storageFault = error
    status.lastFailure = RenewalPlan.Failure(code: error.code, text: "\(error)", at: now)
    status.nextAttempt = now.advanced(by: shortPause)
    listener.status(status)
  }

  // Clocks can be set, and processes on other machines write to a shared storage.
  private func pause(until instant: Timestamp) -> Duration {
    let longest = storage.isShared ? world.interval : Duration.seconds(60)
    return min(max(instant.since(world.clock.now()), .milliseconds(10)), longest)
  }

  private func action(of plan: RenewalPlan, at now: Timestamp) -> RenewalPlan.Action {
    plan.action(
      at: now, for: status.certificate.map(RenewalPlan.Validity.init),
      offersInformation: (offersInformation ?? true) && status.certificate?.renewalID != nil)
  }

  // MARK: Storage

  private func document(_ kind: CertificateDocument.Kind) -> CertificateDocument {
    CertificateDocument(scope: kind == .account ? settings.accountScope : settings.certificateScope, kind: kind)
  }

  /// Serves what other gates have stored, and returns the plan.
  private func refresh() async throws(ACMEError) -> RenewalPlan {
    // Nothing else happens before the plan is stored.
    if let unsaved { try await save(unsaved) }
    let plan: RenewalPlan? = try await read(.plan)
    var current = plan ?? RenewalPlan()
    let stored = try await usable()
    if damage != nil, status.certificate == nil { current.lostCertificate() }
    if let stored, stored.leaf != status.certificate?.leaf {
      await adopt(stored, at: hasRead ? world.clock.now() : stored.notBefore)
      if hasRead {
        listener.note(.obtained(stored, byOtherGate: true, renewal: current.renewal(of: .init(stored))))
      }
    }
    hasRead = true
    // Either direction: clocks can be set.
    if let servingFailed, abs(world.clock.now().since(servingFailed).components.seconds) >= 60 { await serve() }
    if storage.isShared, !isOrdering {
      let challenges: [String: String] = try await read(.challenges) ?? [:]
      listener.answer(challenges.compactMapValues { Base64URL.decode($0) })
    }
    return current
  }

  private func adopt(_ certificate: IssuedCertificate, at instant: Timestamp) async {
    status.certificate = certificate
    status.obtainedAt = instant
    await serve()
  }

  private func serve() async {
    guard let certificate = status.certificate else { return }
    servingFailed = await listener.serve(certificate) ? nil : world.clock.now()
  }

  /// The stored certificate; `nil` if there is none that can be used. A damaged one is reported.
  private func usable() async throws(ACMEError) -> IssuedCertificate? {
    guard let content = try await storage.content(of: document(.certificate)) else {
      damage = nil
      return nil
    }
    do throws(IssuedCertificate.Malformed) {
      let stored = try Self.certificate(in: content, for: settings)
      damage = nil
      return stored
    } catch {
      let fault = ACMEError.storage(reason: "\(document(.certificate).name) is damaged: \(error)")
      if damage == nil {
        damage = RenewalPlan.Failure(code: fault.code, text: "\(fault)", at: world.clock.now())
        listener.note(.damaged(fault))
      }
      return nil
    }
  }

  private static func certificate(
    in content: [UInt8], for settings: CertificateOrderSettings
  ) throws(IssuedCertificate.Malformed) -> IssuedCertificate? {
    let certificate = try IssuedCertificate(file: String(decoding: content, as: UTF8.self))
    return certificate.covers(settings.names) ? certificate : nil
  }

  private func read<Value: Decodable>(_ kind: CertificateDocument.Kind) async throws(ACMEError) -> Value? {
    guard let content = try await storage.content(of: document(kind)) else { return nil }
    // A document of another version is written again.
    return try? JSONDecoder().decode(Value.self, from: Data(content))
  }

  private func write(_ value: some Encodable, to kind: CertificateDocument.Kind) async throws(ACMEError) {
    guard let data = try? JSONEncoder().encode(value) else {
      throw .storage(reason: "\(kind.rawValue) cannot be encoded")
    }
    try await store([UInt8](data), as: kind)
  }

  private func store(_ content: [UInt8], as kind: CertificateDocument.Kind) async throws(ACMEError) {
    guard content.count <= CertificateDocument.longest else {
      throw .storage(
        reason: "\(kind.rawValue) would have \(content.count) bytes, more than \(CertificateDocument.longest)")
    }
    try await storage.write(content, to: document(kind))
  }

  private func note(_ plan: RenewalPlan) {
    status.lastFailure = plan.lastFailure ?? damage
    status.window = plan.window
    status.nextAttempt =
      status.certificate.map {
        max(plan.renewal(of: .init($0)), plan.notBefore ?? $0.notBefore)
      } ?? plan.notBefore
    listener.status(status)
  }

  // MARK: Orders

  /// Orders or asks, unless another gate did in the meantime.
  private func act() async throws(ACMEError) {
    var plan = try await refresh()
    let now = world.clock.now()
    let action = action(of: plan, at: now)
    if case .wait = action { return }
    if case .order = action { try await order(&plan) } else { await ask(&plan) }
    try await save(plan)
    note(plan)
  }

  private func save(_ plan: RenewalPlan) async throws(ACMEError) {
    unsaved = plan
    try await write(plan, to: .plan)
    unsaved = nil
  }

  private func services() async throws(ACMEError) -> Directory {
    await client.forgetDirectory()
    let services = try await client.services()
    offersInformation = services.renewalInfo != nil
    await noteClocks()
    return services
  }

  /// Orders a certificate and records the result in `plan`.
  private func order(_ plan: inout RenewalPlan) async throws(ACMEError) {
    var begun = plan
    begun.began(at: world.clock.now(), world.backoff, random: world.random())
    // Nothing is ordered that could not be stored.
    try await save(begun)
    do throws(ACMEError) {
      try await orderNow(&plan)
    } catch {
      if Task.isCancelled { return }
      plan.failed(error, at: world.clock.now(), world.backoff, random: world.random())
      listener.note(
        .failed(
          error, attempts: plan.failures, retry: plan.notBefore ?? world.clock.now(),
          hasCertificate: status.certificate != nil))
    }
  }

  private func orderNow(_ plan: inout RenewalPlan) async throws(ACMEError) {
    let services = try await services()
    listener.note(.ordering(renewing: status.certificate?.notAfter))
    isOrdering = true
    let issued: IssuedCertificate
    do throws(ACMEError) {
      issued = try await obtain(services)
      try await store(Array(issued.file.utf8), as: .certificate)
      damage = nil
    } catch {
      await endChallenges()
      throw error
    }
    await endChallenges()
    // If it stays, the next order recognizes it by the key.
    try? await storage.write(nil, to: document(.order))
    let now = world.clock.now()
    plan.obtained(.init(issued), at: now)
    await adopt(issued, at: now)
    listener.note(.obtained(issued, byOtherGate: false, renewal: plan.renewal(of: .init(issued))))
    guard issued.notBefore <= now.advanced(by: .seconds(300)), now < issued.notAfter else {
      // Clients may have the right time, so the certificate is served; another order would not help.
      throw .clock(notBefore: issued.notBefore, notAfter: issued.notAfter)
    }
  }

  private func endChallenges() async {
    listener.answer([:])
    isOrdering = false
    // Challenges of an order that has ended are worthless. The next order replaces them.
    if storage.isShared { try? await storage.write(nil, to: document(.challenges)) }
  }

  private func obtain(_ services: Directory) async throws(ACMEError) -> IssuedCertificate {
    let (key, account) = try await account(services)
    do throws(ACMEError) {
      return try await certificate(key, account)
    } catch {
      guard case .refused(_, let problem) = error, problem.code == "accountDoesNotExist" else { throw error }
      // The server lost the account, or it is another server at the same place.
      return try await certificate(key, try await makeAccount(services, key: key))
    }
  }

  private func certificate(_ key: AccountKey, _ account: String) async throws(ACMEError) -> IssuedCertificate {
    var pending: PendingOrder? = try await read(.order)
    if let finished = status.certificate, pending?.key == finished.keyPEM { pending = nil }
    let order = CertificateOrder(
      client: client, key: key, account: account, names: settings.names, clock: world.clock, sleep: world.sleep,
      publish: { [self] digests throws(ACMEError) in try await publish(digests) },
      store: { [self] order throws(ACMEError) in try await keep(order) },
      deadline: world.clock.now().advanced(by: CertificateOrder.longestAttempt))
    do throws(ACMEError) {
      return try await order.run(continuing: pending, replacing: status.certificate)
    } catch {
      switch error {
      case .notValidated, .noChallenge, .unusable:
        // Nothing can become of this order.
        try? await storage.write(nil, to: document(.order))
      default: break
      }
      throw error
    }
  }

  private func keep(_ order: PendingOrder?) async throws(ACMEError) {
    guard let order else { return try await storage.write(nil, to: document(.order)) }
    try await write(order, to: .order)
  }

  private func publish(_ digests: [String: [UInt8]]) async throws(ACMEError) {
    listener.answer(digests)
    guard storage.isShared else { return }
    try await write(digests.mapValues { Base64URL.encode($0) }, to: .challenges)
    // Every gate has read it by then, even without a notice: the validation may reach any of them.
    do throws(CancellationError) {
      try await world.sleep(world.interval + .milliseconds(500))
    } catch {
      throw .unfinished(step: .challenge)
    }
  }

  // MARK: Accounts

  private func account(_ services: Directory) async throws(ACMEError) -> (AccountKey, url: String) {
    guard let stored: StoredAccount = try await read(.account) else {
      let key = try Self.keyOrFailure { () throws(CryptographyError) in try AccountKey() }
      return (key, try await makeAccount(services, key: key))
    }
    let key = try Self.keyOrFailure { () throws(CryptographyError) in try AccountKey(pem: stored.key) }
    guard let url = stored.url else { return (key, try await makeAccount(services, key: key)) }
    // A certificate does not wait for it: the next order tries again.
    if stored.email != settings.email { try? await changeContact(of: stored, at: url, key) }
    return (key, url)
  }

  /// Makes an account, or finds the one that the key has (RFC 8555 section 7.3).
  private func makeAccount(_ services: Directory, key: AccountKey) async throws(ACMEError) -> String {
    if services.meta?.externalAccountRequired == true, settings.binding == nil { throw .bindingRequired }
    var members = [#""termsOfServiceAgreed":true"#, contactMember]
    if let binding = settings.binding {
      members.append(#""externalAccountBinding":\#(binding.signed(key.webKey, url: services.newAccount))"#)
    }
    let payload = "{\(members.joined(separator: ","))}"
    let pem = try Self.keyOrFailure { () throws(CryptographyError) in try key.pem }
    var account = StoredAccount(key: pem, email: settings.email, binding: settings.binding?.keyID)
    // A process that is killed during the request finds its account again by the key.
    try await write(account, to: .account)
    let answer = try await client.post(services.newAccount, payload, key: key, account: nil, step: .account)
    guard let url = answer.location, HTTPSPlace(url) != nil else {
      throw .malformed(url: services.newAccount, reason: "no Location with a URL")
    }
    account.url = url
    try await write(account, to: .account)
    listener.note(.accountMade(url: url))
    return url
  }

  private var contactMember: String {
    #""contact":[\#(settings.email.map { JSONText.quote("mailto:\($0)") } ?? "")]"#
  }

  private func changeContact(
    of account: StoredAccount, at url: String, _ key: AccountKey
  ) async throws(ACMEError) {
    _ = try await client.post(url, "{\(contactMember)}", key: key, account: url, step: .account)
    var account = account
    account.email = settings.email
    try await write(account, to: .account)
  }

  private static func keyOrFailure<Value>(
    _ body: () throws(CryptographyError) -> Value
  ) throws(ACMEError) -> Value {
    do throws(CryptographyError) { return try body() } catch { throw .storage(reason: "the account key: \(error)") }
  }

  // MARK: Renewal information

  /// Asks when the server wants a renewal (RFC 9773). A failure is no reason to renew or not to renew.
  private func ask(_ plan: inout RenewalPlan) async {
    guard let certificate = status.certificate, let id = certificate.renewalID else { return }
    do throws(ACMEError) {
      guard let base = try await services().renewalInfo else { return }
      let answer = try await client.get(base.hasSuffix("/") ? base + id : "\(base)/\(id)", step: .renewalInformation)
      let window: RenewalWindow = try answer.decoded()
      let now = world.clock.now()
      let isNew = window != plan.window
      plan.learned(window, at: now, again: RetryAfter.instant(in: answer.response, at: now))
      if isNew { listener.note(.learned(window, renewal: plan.renewal(of: .init(certificate)))) }
    } catch {
      let again: Timestamp? = if case .rateLimited(_, let until) = error { until } else { nil }
      plan.learnedNothing(at: world.clock.now(), again: again)
    }
  }

  private func noteClocks() async {
    guard let difference = await client.clockDifference, abs(difference.components.seconds) > 60 else { return }
    listener.note(.clocksDiffer(difference))
  }
}
