internal import MFAClient
internal import MFAViewModels
internal import QREncoding

extension LabSnapshot {
  /// The challenge for the second factor. It has no code: the page clears its entry if the app has cleared its own.
  struct Challenge: Sendable, Hashable, Encodable {
    let status: String
    let tabs: [Choice]
    let selected: String
    let label: String
    /// Whether the tab has an entry.
    let takesCode: Bool
    let longest: Int
    let isMasked: Bool
    let isEntryEmpty: Bool
    /// The last change of the entry that the app has taken.
    let change: Int
    let isInputEnabled: Bool
    let canSubmit: Bool
    let isBusy: Bool
    /// The seconds until the authenticator's next code; absent on other tabs.
    let secondsLeft: Int?
    /// The button that sends a code by e-mail; absent on other tabs.
    let email: Choice?
    let canSendEmail: Bool
    let suggestsResend: Bool
    /// The button that uses a security key; absent on other tabs.
    let securityKey: Choice?
    let canUseSecurityKey: Bool
    let biometry: String?
    let isBiometryConfirmed: Bool
    let remembers: Bool
    let error: String?
    let notice: String?
  }

  /// The tab "Security". The secret and backup codes are in it only while the person must see them.
  struct Factor: Sendable, Hashable, Encodable {
    struct Picture: Sendable, Hashable, Encodable {
      let side: Int
      let path: String
    }

    struct Device: Sendable, Hashable, Encodable {
      let id: Int
      let name: String
      let lastUsed: String
      let expires: String
    }

    struct Key: Sendable, Hashable, Encodable {
      let id: String
      let name: String
      let lastUsed: String
    }

    let facts: [Fact]
    let options: [Choice]
    let isBusy: Bool
    let error: String?
    let notice: String?
    let codePrompt: String?
    let asksEmail: Bool
    let secret: String?
    let uri: String?
    let picture: Picture?
    let backupCodes: [String]
    let backupCodesFile: String?
    let devices: [Device]
    let keys: [Key]
  }
}

extension LabSnapshot.Challenge {
  init(_ state: ChallengeState, change: Int) {
    tabs = state.tabs.map { .init(id: $0.rawValue, label: $0.title) }
    selected = state.selectedTab.rawValue
    switch state.selectedTab {
    case .totp: label = "Code of the authenticator"
    case .email: label = "Code from the e-mail"
    case .backup: label = "Backup code"
    case .securityKey: label = "Security key"
    }
    takesCode = state.takesCode
    securityKey = state.takesCode ? nil : .init(id: "securityKey", label: "Use Security Key")
    canUseSecurityKey = state.canUseSecurityKey
    // A code may be pasted with separators.
    longest = 2 * state.selectedTab.codeLength
    isMasked = state.isEntryMasked
    isEntryEmpty = state.entry.isEmpty
    self.change = change
    isInputEnabled = state.isInputEnabled
    canSubmit = state.canSubmit
    secondsLeft = state.selectedTab == .totp ? state.secondsLeftInStep : nil
    let wait = state.secondsUntilResend
    email =
      state.selectedTab == .email
      ? .init(id: "email", label: state.sendEmailLabel + (wait > 0 ? " (in \(wait) s)" : "")) : nil
    canSendEmail = state.canSendEmail
    suggestsResend = state.suggestsResend
    biometry = state.biometryLabel
    isBiometryConfirmed = state.isBiometryConfirmed
    remembers = state.remembersDevice
    error = state.errorText
    notice = state.noticeText
    (status, isBusy) = Self.status(of: state)
  }

  private static func status(of state: ChallengeState) -> (String, Bool) {
    switch state.phase {
    case .loading: ("Asking which codes the account has", true)
    case .unavailable: ("No code can be given here", false)
    case .notRequired: ("This session needs no second factor", false)
    case .entering: ("Enter a code of the second factor", false)
    case .confirmingBiometry: ("Waiting for the phone", true)
    case .usingSecurityKey: ("Waiting for the security key", true)
    case .sendingEmail: ("Asking for an e-mail", true)
    case .verifying: ("Asking the server", true)
    case .waiting: ("Codes are accepted again in \(state.secondsUntilRetry) s", false)
    case .locked: (state.needsSupport ? "The account is locked: contact support" : "The account is locked", false)
    case .sessionEnded: ("Sign in again", false)
    case .verified: ("Signed in", false)
    }
  }
}

extension LabSnapshot.Factor {
  private static func name(ofKind method: String) -> String {
    switch method {
    case "totp": "authenticator"
    case "email": "e-mail"
    case "backup_code": "backup codes"
    case "webauthn": "security key"
    default: method
    }
  }

  init(_ state: FactorState) {
    var facts: [LabSnapshot.Fact] = []
    if state.phase != .loading, state.phase != .unavailable {
      facts.append(.init(label: "Second factor", value: state.isEnabled ? "on" : "off", isGood: state.isEnabled))
    }
    if state.isEnabled {
      facts.append(.init(label: "Kinds of codes", value: state.methods.map(Self.name(ofKind:)).joined(separator: ", ")))
      facts.append(.init(label: "Backup codes left", value: "\(state.backupCodesRemaining)"))
    }
    self.facts = facts
    options = state.options.map { .init(id: $0.rawValue, label: state.label(of: $0)) }
    isBusy = state.phase == .loading || state.phase == .working
    error = state.errorText
    notice = state.noticeText
    codePrompt = state.phase == .ready ? state.codePrompt : nil
    asksEmail = state.asksEmail
    secret = state.offer?.secret
    uri = state.offer?.uri
    // An offer is too long for a QR code only if the name of the account is; the secret can be typed.
    picture = (state.offer?.uri).flatMap { try? QRCode($0) }.map { .init(side: $0.side, path: $0.path) }
    backupCodes = state.backupCodes
    backupCodesFile = state.backupCodes.isEmpty ? nil : state.backupCodesFile
    devices = state.trustedDevices.map {
      .init(id: Int($0.id), name: $0.name, lastUsed: $0.lastUsed, expires: $0.expires)
    }
    keys = state.securityKeys.map { .init(id: $0.id, name: $0.name, lastUsed: $0.lastUsed ?? "never") }
  }
}
