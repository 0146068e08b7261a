public import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import Transport

/// Keeps one certificate valid: orders it, stores it, and renews it in time.
///
/// Gates that share the storage each have a keeper. One of them orders, and all serve.
public actor CertificateKeeper {
  /// What the keeper tells the gate.
  public struct Listener: Sendable {
    /// Serves a certificate from now on, and returns whether that worked. If not, it is called again later.
    public var serve: @Sendable (IssuedCertificate) async -> Bool
    /// Answers exactly these challenges from now on.
    public var answer: @Sendable (ListenerChallenges) -> Void
    /// Writes the records of DNS-01; `nil` without that challenge.
    public var records: (any ChallengeRecords)?
    public var note: @Sendable (CertificateEvent) -> Void
    public var status: @Sendable (CertificateStatus) -> Void

    public init(
      serve: @escaping @Sendable (IssuedCertificate) async -> Bool,
      answer: @escaping @Sendable (ListenerChallenges) -> Void,
      records: (any ChallengeRecords)? = nil,
      note: @escaping @Sendable (CertificateEvent) -> Void = { _ in },
      status: @escaping @Sendable (CertificateStatus) -> Void = { _ in }
    ) {
      (self.serve, self.answer, self.records, self.note, self.status) = (serve, answer, records, note, status)
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

  let settings: CertificateOrderSettings
  let client: ACMEClient
  let storage: any CertificateStorage
  let listener: Listener
  let world: Surroundings
  var status = CertificateStatus()
  /// Whether the server recommends when to renew; `nil` before its directory was read.
  var offersInformation: Bool?
  private var storageFault: ACMEError?
  /// When `storageFault` is reported again.
  private var nextReport: Timestamp?
  /// What is wrong with the stored certificate.
  var damage: RenewalPlan.Failure?
  /// When the listener failed to present the certificate of `status`; `nil` if it presents it.
  private var servingFailed: Timestamp?
  /// Whether the listeners answer the challenges of this keeper's own order.
  var isOrdering = false
  /// The records of the order, to be removed at its end.
  var records: [ChallengeRecord] = []
  /// Whether documents of earlier versions were looked for.
  private var hasTakenOver = false
  /// Whether the storage was read before. What is there at the first time is no news.
  private var hasRead = false
  /// The plan, while it cannot be stored.
  var unsaved: RenewalPlan?

  public init(
    _ settings: CertificateOrderSettings, client: ACMEClient, storage: any CertificateStorage, listener: Listener,
    surroundings: Surroundings = Surroundings()
  ) {
    (self.settings, self.client, self.storage) = (settings, client, storage)
    (self.listener, world) = (listener, surroundings)
  }

  /// Reads the stored certificate, also one of an earlier version; `nil` if there is none for these names.
  public static func stored(
    _ settings: CertificateOrderSettings, in storage: any CertificateStorage
  ) async throws(ACMEError) -> IssuedCertificate? {
    for scope in [settings.certificateScope] + settings.formerScopes {
      let document = CertificateDocument(scope: scope, kind: .certificate)
      guard let content = try await storage.content(of: document) else { continue }
      do throws(IssuedCertificate.Malformed) {
        return try certificate(in: content, for: settings)
      } catch {
        throw .storage(reason: "\(document.name) is damaged: \(error)")
      }
    }
    return nil
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
      if !hasTakenOver { try await takeOver() }
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

  func action(of plan: RenewalPlan, at now: Timestamp) -> RenewalPlan.Action {
    plan.action(
      at: now, for: status.certificate.map(RenewalPlan.Validity.init),
      offersInformation: (offersInformation ?? true) && status.certificate?.renewalID != nil)
  }

  // MARK: Storage

  /// Looks for a certificate in the scopes of earlier versions, and moves it with its plan and its order to the scope
  /// of this one. They do not stay there: a certificate that an operator removes must not return.
  private func takeOver() async throws(ACMEError) {
    if !settings.formerScopes.isEmpty, try await storage.content(of: document(.certificate)) == nil {
      // Another gate is at work: the next step looks again.
      guard try await storage.lock(settings.certificateScope) else { return }
      do throws(ACMEError) {
        try await moveFormerDocuments()
      } catch {
        await storage.unlock(settings.certificateScope)
        throw error
      }
      await storage.unlock(settings.certificateScope)
    }
    hasTakenOver = true
  }

  private func moveFormerDocuments() async throws(ACMEError) {
    for scope in settings.formerScopes {
      let certificate = CertificateDocument(scope: scope, kind: .certificate)
      guard try await storage.content(of: certificate) != nil else { continue }
      // The certificate is last, so that a move that was interrupted is continued.
      for kind in [CertificateDocument.Kind.order, .plan, .certificate] {
        let former = CertificateDocument(scope: scope, kind: kind)
        guard let content = try await storage.content(of: former) else { continue }
        // Another gate may have written it in the meantime.
        if try await storage.content(of: document(kind)) == nil { try await storage.write(content, to: document(kind)) }
        try await storage.write(nil, to: former)
      }
      return
    }
  }

  func document(_ kind: CertificateDocument.Kind) -> CertificateDocument {
    CertificateDocument(scope: kind == .account ? settings.accountScope : settings.certificateScope, kind: kind)
  }

  /// Serves what other gates have stored, and returns the plan.
  func refresh() async throws(ACMEError) -> RenewalPlan {
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
      listener.answer(try await read(.challenges) ?? ListenerChallenges())
    }
    return current
  }

  func adopt(_ certificate: IssuedCertificate, at instant: Timestamp) async {
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

  static func certificate(
    in content: [UInt8], for settings: CertificateOrderSettings
  ) throws(IssuedCertificate.Malformed) -> IssuedCertificate? {
    let certificate = try IssuedCertificate(file: String(decoding: content, as: UTF8.self))
    return certificate.covers(settings.names) ? certificate : nil
  }

  func read<Value: Decodable>(_ kind: CertificateDocument.Kind) async throws(ACMEError) -> Value? {
    guard let content = try await storage.content(of: document(kind)) else { return nil }
    // A document of another version is written again.
    return try? JSONDecoder().decode(Value.self, from: Data(content))
  }

  func write(_ value: some Encodable, to kind: CertificateDocument.Kind) async throws(ACMEError) {
    guard let data = try? JSONEncoder().encode(value) else {
      throw .storage(reason: "\(kind.rawValue) cannot be encoded")
    }
    try await store([UInt8](data), as: kind)
  }

  func store(_ content: [UInt8], as kind: CertificateDocument.Kind) async throws(ACMEError) {
    guard content.count <= CertificateDocument.longest else {
      throw .storage(
        reason: "\(kind.rawValue) would have \(content.count) bytes, more than \(CertificateDocument.longest)")
    }
    try await storage.write(content, to: document(kind))
  }

  func note(_ plan: RenewalPlan) {
    status.lastFailure = plan.lastFailure ?? damage
    status.window = plan.window
    status.nextAttempt =
      status.certificate.map {
        max(plan.renewal(of: .init($0)), plan.notBefore ?? $0.notBefore)
      } ?? plan.notBefore
    listener.status(status)
  }
}
