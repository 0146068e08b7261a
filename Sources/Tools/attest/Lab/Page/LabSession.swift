public import ByteCoding
public import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

/// A phone with an app, and the scenarios, as one page shows and drives them.
///
/// The page sends events and receives all that it shows. Events are taken in the order of their arrival; an event that
/// waits for a prompt does not stop the next one. A malformed event is refused by name and changes nothing.
public actor LabSession {
  /// Makes the server of another app, with an App Attest key that was not used before.
  public typealias BackendFactory = @Sendable () throws -> any MFABackend

  private let phone = SimulatedPhone()
  private let model: TestingViewModel
  private let services: DeviceServices
  private let log: EventLog
  private let makeBackend: BackendFactory
  private let makeIdentity: @Sendable (Scenario) -> ScenarioPlayer.Identity
  private let messages: any MessageSource
  private let identity: ScenarioPlayer.Identity
  private let now: @Sendable () -> Timestamp
  private var username: String
  private var tab = LabTab.enroll
  private var timesSettingsOpened = 0
  private var codes: [String] = []
  private var mailCodes: [String] = []
  /// The number that the person has changed to; this phone has it, too.
  private var otherNumber: String?
  /// Where codes by e-mail are sent, if the person has entered an address.
  private var mailAddress: String?
  private var challenge: ChallengeViewModel?
  /// The last change of the challenge's entry.
  private var lastChange = 0
  private var scenarios = Scenario.all.map { LabSnapshot.Played(id: $0.id, title: $0.title) }
  private var sequence: LabSnapshot.Sequence?
  private var isPlaying = false
  private var observers: [Task<Void, Never>] = []
  private var page: (id: Int, send: @Sendable (String) -> Void)?
  private var lastPage = 0
  private var lastSnapshot: LabSnapshot?
  private var hasChanged = false
  private var isPublishing = false

  /// Creates a phone without an enrolment.
  ///
  /// - Parameters:
  ///   - identity: The account, number and device of the phone.
  ///   - makeBackend: Called for the phone, and for each scenario.
  ///   - makeIdentity: Who plays a scenario.
  ///   - now: The time of the clock.
  public init(
    as identity: ScenarioPlayer.Identity, messages: any MessageSource, makeBackend: @escaping BackendFactory,
    makeIdentity: @escaping @Sendable (Scenario) -> ScenarioPlayer.Identity,
    now: @escaping @Sendable () -> Timestamp
  ) throws {
    let (log, phone) = (EventLog(now: now), phone)
    let opened = AsyncStream.makeStream(of: Void.self)
    services = DeviceServices(
      keychain: phone, biometrics: phone, securityKeys: phone, backend: try makeBackend(),
      storage: MemoryStorageService(deviceID: identity.deviceID),
      app: AppDescription(
        bundleID: "com.example.app", username: identity.username, phoneNumber: identity.phoneNumber,
        deviceModel: phone.settings.model, openSettings: { opened.continuation.yield() }))
    model = TestingViewModel(services: services, log: log, declineNextPrompt: { phone.plan(.decline) })
    self.log = log
    self.identity = identity
    self.messages = messages
    self.makeBackend = makeBackend
    self.makeIdentity = makeIdentity
    self.now = now
    username = identity.username
    settingsOpened = opened.stream
  }

  private let settingsOpened: AsyncStream<Void>

  // MARK: Pages

  /// Shows the lab on another page, which receives all messages from now on.
  ///
  /// - Parameter send: Receives messages in JSON. Called one at a time.
  /// - Returns: The number of the page, for `close`.
  public func open(_ send: @escaping @Sendable (String) -> Void) async -> Int {
    if observers.isEmpty { await observe() }
    // Before the page is shown anything, so that what it sees first is complete.
    await appear()
    lastPage += 1
    page = (lastPage, send)
    lastSnapshot = nil
    for lines in log.entries.map(LabLogLine.init).chunked(by: 200) { self.send(LogMessage(log: lines)) }
    await publish()
    return lastPage
  }

  /// Ends the messages to the page with this number.
  public func close(_ id: Int) { if page?.id == id { page = nil } }

  /// Takes a message of the page. Returns when its event is begun.
  public func receive(_ text: String) async {
    do throws(LabEventError) {
      try await take(LabEvent(text))
    } catch {
      send(["error": error.text])
    }
  }

  private func observe() async {
    let (model, log, phone) = (model, log, phone)
    observers = [
      follow(await model.states()), follow(await model.enrolment.states()), follow(await model.signIn.states()),
      follow(await model.settings.states()), follow(await model.factor.states()), follow(phone.promptUpdates()),
      Task { [weak self] in for await entry in log.updates() { await self?.show(entry) } },
      Task { [weak self, settingsOpened] in for await _ in settingsOpened { await self?.noteOpenedSettings() } },
      Task { [weak self] in
        while (try? await Task.sleep(for: .milliseconds(100))) != nil { await self?.readMessages() }
      },
      Task { [weak self] in while (try? await Task.sleep(for: .seconds(1))) != nil { await self?.tick() } },
    ]
  }

  /// Publishes after each value of `stream`.
  private func follow<Value: Sendable>(_ stream: AsyncStream<Value>) -> Task<Void, Never> {
    Task { [weak self] in for await _ in stream { await self?.publish() } }
  }

  /// Stops following the app. The session shows nothing any more.
  public func end() {
    for observer in observers { observer.cancel() }
    observers = []
    page = nil
  }

  private func show(_ entry: LogEntry) { send(LogMessage(log: [LabLogLine(entry)])) }

  private func noteOpenedSettings() async {
    timesSettingsOpened += 1
    await publish()
  }

  private func readMessages() async {
    guard page != nil, var codes = try? messages.codes(to: identity.phoneNumber) else { return }
    if let otherNumber, let others = try? messages.codes(to: otherNumber) { codes += others }
    let mailCodes = mailAddress.flatMap { try? messages.codes(to: $0) } ?? []
    guard codes != self.codes || mailCodes != self.mailCodes else { return }
    (self.codes, self.mailCodes) = (codes, mailCodes)
    await publish()
  }

  private func tick() async { if page != nil { await challenge?.tick(now()) } }

  // MARK: Events

  private func take(_ event: LabEvent) async throws(LabEventError) {
    let model = model
    switch event {
    case .showTab(let tab):
      self.tab = tab
      begin { await $0.appear() }
    case .setUsername(let name):
      username = name
      await model.enrolment.enter(username: name)
      await model.signIn.enter(username: name)
    case .enroll(let option): begin { _ in await model.enrolment.choose(option) }
    case .declinePasscode: await model.enrolment.declinePasscode()
    case .registerNumber(let number):
      begin { await model.enrolment.register(phoneNumber: number.isEmpty ? $0.identity.phoneNumber : number) }
    case .signIn(.enrollAgain):
      tab = .settings
      begin {
        await model.signIn.choose(.enrollAgain)
        await $0.appear()
      }
    case .signIn(let option): begin { _ in await model.signIn.choose(option) }
    case .startOver: await model.signIn.startOver()
    case .enterCode(let code): begin { _ in await model.signIn.enter(code: code) }
    case .challenge(let event): await take(event)
    case .factor(let event): take(event)
    case .changeSettings(let option): begin { _ in await model.settings.choose(option) }
    case .changeNumber(let number):
      otherNumber = number == identity.phoneNumber ? nil : number
      begin { _ in await model.settings.change(phoneNumber: number) }
    case .confirmNumber(let code): begin { _ in await model.settings.confirm(numberCode: code) }
    case .resendNumberCode: begin { _ in await model.settings.resendNumberCode() }
    case .run(let action): begin { _ in await model.run(action) }
    case .enterTestCode(let code): begin { _ in await model.enter(code: code) }
    case .answer(let id, let answer):
      guard phone.answer(id, with: answer) else { throw LabEventError("answer: the prompt is not shown any more") }
    case .setPhone(let change):
      try apply(change)
      // The owner returns from the Settings app.
      begin { await $0.appear() }
    case .play(let index): try beginScenario(index)
    case .clearLog: log.clear()
    }
    await publish()
  }

  private func take(_ event: LabEvent.ChallengeEvent) async {
    guard let challenge else { return }
    switch event {
    case .select(let tab): await challenge.select(tab)
    case .enter(let text, let change):
      lastChange = change
      await challenge.enter(text)
      if await challenge.state.submitsWhenTyped { begin { _ in await challenge.verify() } }
    case .remember(let isOn): await challenge.setRemembersDevice(isOn)
    case .useBiometry: begin { _ in await challenge.useBiometry() }
    case .useSecurityKey: begin { _ in await challenge.useSecurityKey() }
    case .sendEmail: begin { _ in await challenge.sendEmail() }
    case .verify: begin { _ in await challenge.verify() }
    }
  }

  private func take(_ event: LabEvent.FactorEvent) {
    let factor = model.factor
    switch event {
    case .choose(let option): begin { _ in await factor.choose(option) }
    case .enterCode(let code): begin { _ in await factor.enter(code: code) }
    case .enterEmail(let address):
      mailAddress = address.filter { !$0.isWhitespace }.lowercased()
      begin { _ in await factor.enter(email: address) }
    case .revoke(let id): begin { _ in await factor.revoke(Int64(id)) }
    case .removeKey(let id): begin { _ in await factor.remove(id) }
    }
  }

  /// A challenge belongs to the session of one sign-in: it begins with it, and the next sign-in ends it.
  private func updateChallenge() async {
    guard await model.signIn.state.phase == .signedIn(needsSecondFactor: true) else { return challenge = nil }
    guard challenge == nil, let next = await model.challenge() else { return }
    challenge = next
    let (states, time) = (await next.states(), now())
    Task { [weak self] in for await _ in states { await self?.publish() } }
    begin { _ in await next.appear(at: time) }
  }

  /// Does something that may wait for a prompt.
  private func begin(_ body: @escaping @Sendable (LabSession) async -> Void) {
    Task {
      await body(self)
      await publish()
    }
  }

  /// Tells the screen in front that it appears.
  private func appear() async {
    switch tab {
    case .enroll: await model.enrolment.appear()
    case .signIn: break
    case .security: await model.factor.appear()
    case .dashboard: await model.appear()
    case .settings: await model.settings.appear()
    }
  }

  private func apply(_ change: LabEvent.PhoneChange) throws(LabEventError) {
    switch change {
    case .passcode(true): phone.setPasscode()
    case .passcode(false): phone.removePasscode()
    case .biometryEnrolled(true):
      guard phone.enrollBiometry() else {
        throw LabEventError("biometryEnrolled: a phone needs a sensor and a passcode for that")
      }
    case .biometryEnrolled(false): phone.removeBiometry()
    case .biometry(let type):
      phone.removeBiometry()
      phone.configure { $0.biometry = type }
    case .permission(let permission): phone.configure { $0.permission = permission }
    case .simulator(let isSimulator): phone.configure { $0.isSimulator = isSimulator }
    }
  }

  // MARK: Scenarios

  private func beginScenario(_ index: Int) throws(LabEventError) {
    guard scenarios.indices.contains(index) else { throw LabEventError("play: no such scenario: \(index)") }
    guard !isPlaying else { throw LabEventError("play: another scenario is being played") }
    let backend: any MFABackend
    do { backend = try makeBackend() } catch { throw LabEventError("play: \(error)") }
    isPlaying = true
    let scenario = Scenario.all[index]
    scenarios[index] = LabSnapshot.Played(id: scenario.id, title: scenario.title, status: .running)
    sequence = LabSnapshot.Sequence(title: "\(scenario.id) \(scenario.title)")
    Task { await play(scenario, at: index, backend) }
  }

  private func play(_ scenario: Scenario, at index: Int, _ backend: any MFABackend) async {
    let log = EventLog(now: now)
    let updates = log.updates()
    let drawing = Task { for await entry in updates { await draw(entry) } }
    let report = await ScenarioPlayer(backend: backend, messages: messages, log: log)
      .play(scenario, as: makeIdentity(scenario))
    // All lines are in the log now.
    sequence?.exchanges = log.entries.compactMap(LabSnapshot.Sequence.Exchange.init)
    drawing.cancel()
    let failure = report.failedStep.map { "\($0.text) - found: \($0.failure ?? "")" }
    scenarios[index] = LabSnapshot.Played(
      id: scenario.id, title: scenario.title, status: report.hasPassed ? .passed : .failed, failure: failure)
    self.log.add(
      .app, "\(scenario.id) \(scenario.title)", report.hasPassed ? .success : .failure, failure ?? "passed")
    isPlaying = false
    await publish()
  }

  private func draw(_ entry: LogEntry) async {
    guard isPlaying, let exchange = LabSnapshot.Sequence.Exchange(entry) else { return }
    sequence?.exchanges.append(exchange)
    await publish()
  }

  // MARK: Messages

  private struct StateMessage: Encodable { let state: LabSnapshot }
  private struct LogMessage: Encodable { let log: [LabLogLine] }

  /// Sends what the page shows, if it has changed.
  ///
  /// One call at a time composes snapshots, so that no older one follows a newer one.
  private func publish() async {
    hasChanged = true
    guard !isPublishing else { return }
    isPublishing = true
    while hasChanged, page != nil {
      hasChanged = false
      await sendSnapshot()
    }
    isPublishing = false
  }

  private func sendSnapshot() async {
    await updateChallenge()
    var shown: LabSnapshot.Challenge?
    if let challenge { shown = LabSnapshot.Challenge(await challenge.state, change: lastChange) }
    let snapshot = LabSnapshot(
      tab: tab, username: username,
      phone: LabSnapshot.Phone(phone, codes: codes, mailCodes: mailCodes, timesSettingsOpened: timesSettingsOpened),
      enrolment: LabSnapshot.Enrolment(await model.enrolment.state),
      signIn: LabSnapshot.SignIn(await model.signIn.state, challenge: shown),
      security: LabSnapshot.Factor(await model.factor.state),
      dashboard: LabSnapshot.Dashboard(await model.state),
      settings: LabSnapshot.Settings(await model.settings.state, app: model.settings.appText), scenarios: scenarios,
      sequence: sequence)
    guard snapshot != lastSnapshot else { return }
    lastSnapshot = snapshot
    send(StateMessage(state: snapshot))
  }

  private func send(_ message: some Encodable) { page?.send(JSONText.encoding(message)) }
}

extension Array {
  fileprivate func chunked(by count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}

extension Timestamp {
  /// RFC 3339 in UTC, with exactly three digits of the fraction.
  var withMilliseconds: String {
    let text = Timestamp(milliseconds: milliseconds).description
    return text.contains(".") ? text : text.dropLast() + ".000Z"
  }
}
