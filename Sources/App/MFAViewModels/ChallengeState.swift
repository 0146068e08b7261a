internal import ByteCoding
internal import MFAClient

/// What the screen for the second factor shows. Changed only by events; compares by value.
///
/// `description` contains no code that the user has entered.
public struct ChallengeState: Sendable, Hashable {
  /// What happens now.
  public enum Phase: Sendable, Hashable {
    /// The screen has not appeared yet, or the app asks the server which codes the account has.
    case loading
    /// The server did not say which codes the account has, or it has none that this screen accepts.
    case unavailable
    /// The session needs no second factor.
    case notRequired
    /// The user enters a code.
    case entering
    /// The phone shows a prompt for biometry.
    case confirmingBiometry
    /// The app waits for a security key, and for the server's answer to its proof.
    case usingSecurityKey
    /// The app asks the server for a code by e-mail.
    case sendingEmail
    /// The app sends the code.
    case verifying
    /// The server accepts no codes for a while: the input is disabled.
    case waiting
    /// The account is locked: the user can contact support.
    case locked
    /// The session is no longer valid: the user signs in again.
    case sessionEnded
    /// The server has accepted the code.
    case verified
  }

  /// A way to give the second factor, each on its tab.
  public enum Tab: String, Sendable, Hashable, CaseIterable {
    /// A code of an authenticator app.
    case totp
    /// A code that the server sends by e-mail.
    case email
    /// A backup code.
    case backup
    /// A security key: its tab has a button and no entry.
    case securityKey

    /// The label of the tab.
    public var title: String {
      switch self {
      case .totp: "Authenticator"
      case .email: "Email"
      case .backup: "Backup Code"
      case .securityKey: "Security Key"
      }
    }

    /// The number of characters of a code; 0 for a tab without an entry.
    public var codeLength: Int {
      switch self {
      case .totp, .email: 6
      case .backup: 8
      case .securityKey: 0
      }
    }
  }

  /// What happens now.
  public internal(set) var phase = Phase.loading
  /// The tabs of the account's codes, in the order of the screen.
  public internal(set) var tabs: [Tab] = []
  /// The tab in front.
  public internal(set) var selectedTab = Tab.totp
  /// The last error, as a text for the user; `nil` if the last step succeeded.
  public internal(set) var errorText: String?
  /// What the last step has achieved, as a text for the user; `nil` for nothing to say.
  public internal(set) var noticeText: String?
  /// Whether to point to the button that sends another code by e-mail, because the last one has expired.
  public internal(set) var suggestsResend = false
  /// Whether the server is asked to trust this device for 30 days.
  public internal(set) var remembersDevice = false
  /// Whether the server trusts this device already.
  public internal(set) var isDeviceTrusted = false
  /// Whether the user has approved a prompt for biometry. It replaces no code and is not sent to the server.
  public internal(set) var isBiometryConfirmed = false
  /// The seconds until the authenticator shows its next code, 1 to 30; `nil` before the first tick.
  public internal(set) var secondsLeftInStep: Int?
  /// The seconds until another code by e-mail can be requested; 0 if it can be requested now.
  public internal(set) var secondsUntilResend = 0
  /// The seconds until the input is enabled again; 0 if no time is set.
  public internal(set) var secondsUntilRetry = 0

  /// What the user has entered on each tab, without spaces and hyphens.
  var entries: [Tab: String] = [:]
  /// What the device offers.
  var capability = DeviceCapability.none
  /// The sensor of the device.
  var biometryType = BiometryType.none
  /// Whether the server's policy allows the prompt for biometry.
  var allowsBiometry = false
  /// Whether this screen has requested a code by e-mail.
  var hasSentEmail = false

  /// The state before the screen appears.
  public init() {}

  /// What the user has entered on the tab in front, without spaces and hyphens.
  public var entry: String { entries[selectedTab] ?? "" }

  /// Whether the view shows dots in the place of the entry.
  public var isEntryMasked: Bool { selectedTab == .backup }

  /// Whether the user can enter a code, choose a tab and change the toggle.
  public var isInputEnabled: Bool {
    switch phase {
    case .entering, .confirmingBiometry, .sendingEmail: true
    case .loading, .unavailable, .notRequired, .usingSecurityKey, .verifying, .waiting, .locked, .sessionEnded,
      .verified:
      false
    }
  }

  /// Whether the tab in front has an entry for a code.
  public var takesCode: Bool { selectedTab.codeLength > 0 }

  /// Whether the button "Use Security Key" can be used now.
  public var canUseSecurityKey: Bool {
    phase == .entering && selectedTab == .securityKey && tabs.contains(.securityKey)
  }

  /// Whether the entry has the shape of a code and can be sent now.
  public var canSubmit: Bool { phase == .entering && tabs.contains(selectedTab) && selectedTab.accepts(entry) }

  /// Whether the view sends the entry by itself as soon as the user has typed it: six digits can only be complete. A
  /// backup code is sent by the button.
  public var submitsWhenTyped: Bool { canSubmit && selectedTab != .backup }

  /// Whether a code by e-mail can be requested now.
  public var canSendEmail: Bool { phase == .entering && tabs.contains(.email) && secondsUntilResend == 0 }

  /// The label of the button that requests a code by e-mail.
  public var sendEmailLabel: String { hasSentEmail ? "Resend Code" : "Send Code" }

  /// The label of the button for biometry, with the name of the sensor; `nil` hides the button.
  ///
  /// The button is hidden where biometry cannot be used, where the server's policy forbids it, and after a success.
  public var biometryLabel: String? {
    guard capability == .biometricsAvailable, allowsBiometry, !isBiometryConfirmed, isInputEnabled else { return nil }
    return biometryType.name.map { "Use \($0)" }
  }

  /// Whether to show how to contact support.
  public var needsSupport: Bool { phase == .locked }
}

extension ChallengeState: CustomStringConvertible, CustomReflectable {
  public var description: String { "ChallengeState(\(phase), \(selectedTab.rawValue))" }

  /// The phase and the tab: dumps contain no codes, either.
  public var customMirror: Mirror { Mirror(self, children: ["phase": phase, "selectedTab": selectedTab]) }
}

extension ChallengeState.Tab {
  /// The kind of code, as the server names it.
  var method: String {
    switch self {
    case .totp: "totp"
    case .email: "email"
    case .backup: "backup_code"
    case .securityKey: "webauthn"
    }
  }

  /// Returns `text` without separators and full-width characters, at most 32 characters, and for backup codes in
  /// capitals.
  func normalized(_ text: String) -> String {
    // A page that was pasted by mistake is not read to its end.
    let plain = TypedCode.plain(text.prefix(1024)).prefix(32)
    // Only ASCII letters: the capital of another character can be two ASCII letters.
    return self == .backup ? plain.map { $0.isASCII ? $0.uppercased() : String($0) }.joined() : String(plain)
  }

  /// Whether `entry` has the shape of a code: 6 ASCII digits, or 8 ASCII letters and digits with at least one letter.
  func accepts(_ entry: String) -> Bool {
    guard codeLength > 0, entry.utf8.count == codeLength, entry.allSatisfy(\.isASCII) else { return false }
    let digits = entry.count(where: \.isNumber)
    return self == .backup
      ? digits < codeLength && entry.allSatisfy { $0.isNumber || $0.isLetter } : digits == codeLength
  }
}
