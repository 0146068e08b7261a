internal import ByteCoding
internal import MFAClient

/// The rules of the second factor: an event changes the state and asks for at most one effect. It performs nothing
/// itself, and time passes only by ticks.
struct ChallengeMachine: StateMachine, Hashable {
  /// What the server says about the account and this device.
  struct Status: Sendable, Hashable {
    let needsCode: Bool
    let isDeviceTrusted: Bool
    /// The kinds of codes, as the server names them. Those without a tab are ignored.
    let methods: [String]
    let allowsBiometry: Bool
  }

  /// What the user and the clock do, and what effects report.
  enum Event: Sendable, Hashable {
    case appeared
    case ticked(Timestamp)
    /// What the server said about the account may no longer be true.
    case invalidatedStatus
    case selected(ChallengeState.Tab)
    case entered(String)
    case opened(ChallengeLink)
    case toggledTrust(Bool)
    case choseBiometry
    case requestedEmail
    case submitted
    case choseSecurityKey
    case readCapability(DeviceCapability, BiometryType)
    case readStatus(Status)
    case statusFailed(ChallengeFailure)
    case confirmedBiometry
    case biometryFailed(DeviceSecurityError, DeviceCapability)
    case emailSent
    case securityKeyFailed(SecurityKeyError)
    case verified
    /// The server did not send an e-mail, or did not accept a code.
    case failed(ChallengeFailure)
  }

  /// What the view model does next.
  enum Effect: Sendable, Hashable {
    /// Reads the capability, and then the status.
    case readStatus
    case readCapability
    case evaluateBiometry
    case sendEmail
    case verify(code: String, method: String, trustsDevice: Bool)
    case proveSecurityKey(trustsDevice: Bool)
  }

  init(supportsSecurityKeys: Bool = false) { self.supportsSecurityKeys = supportsSecurityKeys }

  /// The step of authenticator codes, in seconds.
  static let totpStep: Int64 = 30
  /// The status is read again if it is older.
  static let statusLifetime = Duration.seconds(30)
  /// The pause between two codes by e-mail. The server enforces it.
  static let emailPause = Duration.seconds(60)
  /// The wait after a refusal that does not say how long to wait.
  static let defaultWait = Duration.seconds(30)
  /// A longer wait is shortened to this: no lockout of the server lasts longer.
  static let longestWait = Duration.seconds(86_400)

  private(set) var state = ChallengeState()
  /// Whether the app can use security keys.
  private let supportsSecurityKeys: Bool
  private var now: Timestamp?
  /// `nil` if the status must be read before it is relied on.
  private var statusAge: Duration?
  private var isReadingStatus = false
  /// Whether the status was invalidated while it was being read.
  private var readsStatusAgain = false
  private var waitForEmail: Duration?
  private var waitForRetry: Duration?

  mutating func apply(_ event: Event) -> Effect? {
    switch (event, state.phase) {
    case (.ticked(let time), _): tick(time)
    case (.appeared, _): return appear()
    case (.invalidatedStatus, _): return invalidateStatus()
    case (.readCapability(let capability, let type), _):
      (state.capability, state.biometryType) = (capability, type)
    case (.readStatus(let status), _) where isReadingStatus: return updateStatus(status)
    case (.statusFailed(let failure), _) where isReadingStatus: return statusFailed(failure)
    case (.opened(let link), _): fill(link)
    case (.selected(let tab), _) where state.isInputEnabled && state.tabs.contains(tab): select(tab)
    case (.entered(let text), _) where state.isInputEnabled:
      state.entries[state.selectedTab] = state.selectedTab.normalized(text)
    case (.toggledTrust(let isOn), _) where state.isInputEnabled: state.remembersDevice = isOn
    case (.choseBiometry, .entering) where state.biometryLabel != nil:
      begin(.confirmingBiometry)
      return .evaluateBiometry
    case (.confirmedBiometry, .confirmingBiometry): (state.phase, state.isBiometryConfirmed) = (.entering, true)
    case (.biometryFailed(let error, let capability), .confirmingBiometry):
      (state.phase, state.capability) = (.entering, capability)
      state.errorText = error.advice(in: .signIn, capability: capability).text
    case (.requestedEmail, .entering) where state.canSendEmail:
      begin(.sendingEmail)
      return .sendEmail
    case (.emailSent, .sendingEmail): emailSent()
    case (.submitted, .entering) where state.canSubmit:
      begin(.verifying)
      return .verify(
        code: state.entry, method: state.selectedTab.method, trustsDevice: state.remembersDevice)
    case (.choseSecurityKey, .entering) where state.canUseSecurityKey:
      begin(.usingSecurityKey)
      return .proveSecurityKey(trustsDevice: state.remembersDevice)
    case (.securityKeyFailed(let error), .usingSecurityKey):
      (state.phase, state.errorText) = (.entering, "\(error)")
    case (.verified, .verifying), (.verified, .usingSecurityKey): (state.phase, state.entries) = (.verified, [:])
    case (.failed(let failure), .verifying), (.failed(let failure), .usingSecurityKey): verificationFailed(failure)
    case (.failed(let failure), .sendingEmail): emailFailed(failure)
    default: break
    }
    return nil
  }

  private mutating func begin(_ phase: ChallengeState.Phase) {
    (state.phase, state.errorText, state.noticeText, state.suggestsResend) = (phase, nil, nil, false)
  }

  // MARK: Status

  private mutating func appear() -> Effect? {
    let isFresh = statusAge.map { $0 <= Self.statusLifetime } ?? false
    return isFresh || isReadingStatus || !acceptsStatus ? .readCapability : readStatus()
  }

  private mutating func invalidateStatus() -> Effect? {
    statusAge = nil
    if isReadingStatus {
      readsStatusAgain = true
      return nil
    }
    // Before the screen has appeared there is nothing to update.
    return acceptsStatus && state.phase != .loading ? readStatus() : nil
  }

  /// Whether a status can change what the screen shows. A step that has begun is finished first.
  private var acceptsStatus: Bool {
    switch state.phase {
    case .loading, .unavailable, .notRequired, .entering: true
    case .locked: waitForRetry == nil
    case .confirmingBiometry, .usingSecurityKey, .sendingEmail, .verifying, .waiting, .sessionEnded, .verified: false
    }
  }

  private mutating func readStatus() -> Effect {
    isReadingStatus = true
    if state.phase == .unavailable { begin(.loading) }
    return .readStatus
  }

  private mutating func updateStatus(_ status: Status) -> Effect? {
    if readsStatusAgain {
      readsStatusAgain = false
      return .readStatus
    }
    isReadingStatus = false
    guard acceptsStatus else { return nil }
    statusAge = .zero
    state.isDeviceTrusted = status.isDeviceTrusted
    state.allowsBiometry = status.allowsBiometry
    state.tabs = ChallengeState.Tab.allCases.filter {
      status.methods.contains($0.method) && ($0 != .securityKey || supportsSecurityKeys)
    }
    if let first = state.tabs.first, !state.tabs.contains(state.selectedTab) { state.selectedTab = first }
    state.entries = state.entries.filter { state.tabs.contains($0.key) }
    if !status.needsCode {
      begin(.notRequired)
    } else if state.tabs.isEmpty {
      begin(.unavailable)
      state.errorText = "This app supports none of the second factors of this account."
    } else if state.phase != .entering {
      begin(.entering)
    }
    return nil
  }

  private mutating func statusFailed(_ failure: ChallengeFailure) -> Effect? {
    (isReadingStatus, readsStatusAgain) = (false, false)
    guard acceptsStatus else { return nil }
    if case .sessionEnded = failure {
      fail(.sessionEnded, failure)
    } else if state.phase == .loading {
      fail(.unavailable, failure)
    }
    // Otherwise the user continues with what is shown, and the next appearance reads the status again.
    return nil
  }

  // MARK: Entry

  private mutating func select(_ tab: ChallengeState.Tab) {
    guard tab != state.selectedTab else { return }
    (state.selectedTab, state.errorText, state.noticeText, state.suggestsResend) = (tab, nil, nil, false)
  }

  private mutating func fill(_ link: ChallengeLink) {
    switch state.phase {
    // Without tabs, the status decides later whether the account has codes by e-mail.
    case .loading, .unavailable, .entering, .confirmingBiometry, .sendingEmail, .waiting:
      guard state.tabs.isEmpty || state.tabs.contains(.email) else { return }
      (state.selectedTab, state.entries[.email]) = (.email, link.code)
    case .notRequired, .usingSecurityKey, .verifying, .locked, .sessionEnded, .verified: break
    }
  }

  // MARK: Answers

  private mutating func emailSent() {
    begin(.entering)
    waitForEmail = Self.emailPause
    state.hasSentEmail = true
    state.noticeText = "A new code has been sent to your e-mail address."
    // Only the newest code is valid.
    state.entries[.email] = nil
    showWaits()
  }

  private mutating func emailFailed(_ failure: ChallengeFailure) {
    switch failure {
    case .rateLimited(let wait):
      waitForEmail = Self.bounded(wait ?? Self.emailPause)
      fail(.entering, failure)
    case .locked(let wait): lock(wait, failure)
    case .sessionEnded: fail(.sessionEnded, failure)
    case .invalidCode, .expiredCode, .network, .refused: fail(.entering, failure)
    }
    showWaits()
  }

  private mutating func verificationFailed(_ failure: ChallengeFailure) {
    switch failure {
    case .invalidCode, .expiredCode:
      state.entries[state.selectedTab] = nil
      state.suggestsResend = failure == .expiredCode && state.selectedTab == .email
      fail(.entering, failure)
    case .rateLimited(let wait):
      waitForRetry = Self.bounded(wait ?? Self.defaultWait)
      fail(.waiting, failure)
    case .locked(let wait): lock(wait, failure)
    case .sessionEnded: fail(.sessionEnded, failure)
    // The server may not have seen the code, so it is kept for another attempt.
    case .network, .refused: fail(.entering, failure)
    }
    showWaits()
  }

  private mutating func lock(_ wait: Duration?, _ failure: ChallengeFailure) {
    waitForRetry = wait.map(Self.bounded)
    state.entries = [:]
    fail(.locked, failure)
  }

  private mutating func fail(_ phase: ChallengeState.Phase, _ failure: ChallengeFailure) {
    (state.phase, state.errorText) = (phase, failure.text)
  }

  // MARK: Time

  /// Counts waits down by the time since the last tick. A clock that is set back neither shortens nor extends them.
  private mutating func tick(_ time: Timestamp) {
    let elapsed = now.map(time.since) ?? .zero
    now = time
    // After a change of the clock the age of the status is not known.
    statusAge = elapsed < .zero ? nil : statusAge.map { $0 + elapsed }
    waitForEmail = Self.remaining(waitForEmail, after: elapsed)
    let hadToWait = waitForRetry != nil
    waitForRetry = Self.remaining(waitForRetry, after: elapsed)
    if hadToWait, waitForRetry == nil, state.phase == .waiting || state.phase == .locked { begin(.entering) }
    let second = time.seconds % Self.totpStep
    state.secondsLeftInStep = Int(Self.totpStep - (second < 0 ? second + Self.totpStep : second))
    showWaits()
  }

  private mutating func showWaits() {
    state.secondsUntilResend = Self.wholeSeconds(waitForEmail)
    state.secondsUntilRetry = Self.wholeSeconds(waitForRetry)
  }

  private static func bounded(_ wait: Duration) -> Duration { min(max(wait, .seconds(1)), longestWait) }

  private static func remaining(_ wait: Duration?, after elapsed: Duration) -> Duration? {
    guard let wait, wait > elapsed else { return nil }
    return elapsed > .zero ? wait - elapsed : wait
  }

  /// Rounded up, so that 0 means that the wait is over.
  private static func wholeSeconds(_ wait: Duration?) -> Int {
    guard let (seconds, attoseconds) = wait?.components else { return 0 }
    return Int(seconds) + (attoseconds > 0 ? 1 : 0)
  }
}
