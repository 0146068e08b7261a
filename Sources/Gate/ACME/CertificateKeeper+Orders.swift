internal import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import Transport

/// Orders, accounts and renewal information.
extension CertificateKeeper {
  /// Orders or asks, unless another gate did in the meantime.
  func act() async throws(ACMEError) {
    var plan = try await refresh()
    let now = world.clock.now()
    let action = action(of: plan, at: now)
    if case .wait = action { return }
    if case .order = action { try await order(&plan) } else { await ask(&plan) }
    try await save(plan)
    note(plan)
  }

  func save(_ plan: RenewalPlan) async throws(ACMEError) {
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
  func order(_ plan: inout RenewalPlan) async throws(ACMEError) {
    var begun = plan
    begun.began(at: world.clock.now(), world.backoff, random: world.random())
    // Nothing is ordered that could not be stored.
    try await save(begun)
    do throws(ACMEError) {
      try await orderNow(&plan)
    } catch {
      if Task.isCancelled { return }
      plan.failed(error, at: world.clock.now(), world.backoff, random: world.random())
      // Before the log line, so that a reader of the line finds the failure in the status.
      note(plan)
      listener.note(
        .failed(
          error, attempts: plan.failures, retry: plan.notBefore ?? world.clock.now(),
          hasCertificate: status.certificate != nil))
    }
  }

  private func orderNow(_ plan: inout RenewalPlan) async throws(ACMEError) {
    let services = try await services()
    try services.requireProfile(settings.profile)
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
    listener.answer(ListenerChallenges())
    isOrdering = false
    await removeRecords()
    // Challenges of an order that has ended are worthless. The next order replaces them.
    if storage.isShared { try? await storage.write(nil, to: document(.challenges)) }
  }

  private func obtain(_ services: Directory) async throws(ACMEError) -> IssuedCertificate {
    let (key, account, isNew) = try await account(services)
    do throws(ACMEError) {
      return try await certificate(key, account)
    } catch {
      // The server lost the account, or it is another server at the same place. A server that has just made the account
      // means something else.
      guard !isNew, error.mayMeanLostAccount else { throw error }
      let made: String
      do throws(ACMEError) {
        made = try await makeAccount(services, key: key)
      } catch let failure {
        if Task.isCancelled || failure.outranksRefusal(error) { throw failure }
        throw error
      }
      // Once: a refusal of this order is final for the attempt.
      return try await certificate(key, made)
    }
  }

  private func certificate(_ key: AccountKey, _ account: String) async throws(ACMEError) -> IssuedCertificate {
    var pending: PendingOrder? = try await read(.order)
    if let finished = status.certificate, pending?.key == finished.keyPEM { pending = nil }
    if let known = pending { pending = try await continuable(known) }
    let order = CertificateOrder(
      client: client, key: key, account: account, settings: settings, clock: world.clock, sleep: world.sleep,
      publish: { [self] answers throws(ACMEError) in try await publish(answers) },
      store: { [self] order throws(ACMEError) in try await keep(order) },
      deadline: world.clock.now().advanced(
        by: CertificateOrder.longestAttempt + (listener.records?.wait ?? .zero)))
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

  /// Returns `order` unless it is too old to be continued. Some servers never finish an order, and do not call it
  /// invalid: another one has to be placed before the certificate expires.
  private func continuable(_ order: PendingOrder) async throws(ACMEError) -> PendingOrder? {
    let now = world.clock.now()
    guard let beginning = order.begunAt.flatMap({ Timestamp(rfc3339: $0) }) else {
      var order = order
      order.begunAt = now.description
      try await keep(order)
      return order
    }
    let longest = status.certificate.map { RenewalPlan.Validity($0).orderPause } ?? RenewalPlan.longestOrderPause
    // A beginning in the future was written while the clock of the machine was wrong.
    return now.since(beginning) <= longest && beginning.since(now) <= longest ? order : nil
  }

  private func keep(_ order: PendingOrder?) async throws(ACMEError) {
    guard let order else { return try await storage.write(nil, to: document(.order)) }
    try await write(order, to: .order)
  }

  private func publish(_ answers: ChallengeAnswers) async throws(ACMEError) {
    listener.answer(answers.listener)
    var pause = Duration.zero
    if !answers.records.isEmpty {
      pause = try await add(answers.records)
    } else if storage.isShared {
      try await write(answers.listener, to: .challenges)
      // Every gate has read it by then, even without a notice: the validation may reach any of them.
      pause = world.interval + .milliseconds(500)
    }
    guard pause > .zero else { return }
    do throws(CancellationError) {
      try await world.sleep(pause)
    } catch {
      throw .unfinished(step: .challenge)
    }
  }

  /// Adds the records of DNS-01, and returns how long they take to be visible.
  private func add(_ records: [ChallengeRecord]) async throws(ACMEError) -> Duration {
    guard let writer = listener.records else {
      throw .record(name: records[0].name, reason: "nothing writes records")
    }
    for record in records {
      // First: what fails may have done a part.
      self.records.append(record)
      try await writer.add(record)
    }
    return writer.wait
  }

  private func removeRecords() async {
    for record in records {
      do throws(ACMEError) {
        try await listener.records?.remove(record)
      } catch {
        listener.note(.recordNotRemoved(error))
      }
    }
    records = []
  }

  // MARK: Accounts

  private func account(_ services: Directory) async throws(ACMEError) -> (AccountKey, url: String, isNew: Bool) {
    guard let stored: StoredAccount = try await read(.account) else {
      let key = try Self.keyOrFailure { () throws(CryptographyError) in try AccountKey() }
      return (key, try await makeAccount(services, key: key), true)
    }
    let key = try Self.keyOrFailure { () throws(CryptographyError) in try AccountKey(pem: stored.key) }
    guard let url = stored.url else { return (key, try await makeAccount(services, key: key), true) }
    // A certificate does not wait for it: the next order tries again.
    if stored.email != settings.email { try? await changeContact(of: stored, at: url, key) }
    return (key, url, false)
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

extension ACMEError {
  /// Whether a server that has forgotten the account answers so. Few servers say `accountDoesNotExist`: others answer
  /// with 500, with 401, with 403 `unauthorized` or with 400 `malformed`. A `newAccount` with the same key decides: it
  /// finds the account or makes it (RFC 8555 section 7.3.1).
  fileprivate var mayMeanLostAccount: Bool {
    guard case .refused(let step, let problem) = self else { return false }
    if problem.code == "accountDoesNotExist" { return true }
    // Later steps belong to an order that the account has just placed. The problem of an order itself has no status.
    guard step == .order else { return false }
    return switch problem.status {
    case 500, 401: true
    case 403: problem.code == "unauthorized"
    case 400: problem.code == "malformed"
    default: false
    }
  }

  /// Whether this failure of `newAccount` says more than `refusal`, the refusal of the order before it.
  fileprivate func outranksRefusal(_ refusal: ACMEError) -> Bool {
    if case .refused(_, let problem) = refusal, problem.code == "accountDoesNotExist" { return true }
    // A limit has to be kept, and a storage that fails stops orders.
    return switch self {
    case .rateLimited, .storage: true
    default: false
    }
  }
}
