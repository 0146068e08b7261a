internal import ByteCoding
internal import MFAClient

/// What the screen shows on which a user sets up and manages the second factor. Changed only by events; compares by value.
///
/// It has the secret and the backup codes while the user must see them, and not after that. `description` has neither.
public struct FactorState: Sendable, Hashable {
  /// What happens now.
  public enum Phase: Sendable, Hashable {
    /// The screen has not appeared yet, or the app asks the server for the first time.
    case loading
    /// The server did not say what the account has.
    case unavailable
    /// The user can choose.
    case ready
    /// The app waits for the server.
    case working
  }

  /// A choice that the screen offers now.
  public enum Option: String, Sendable, Hashable, CaseIterable {
    /// Makes a secret for an authenticator.
    case setUp
    /// Asks for a code, and then makes new backup codes in place of the present ones.
    case renewBackupCodes
    /// Asks for a code, and then switches the second factor off.
    case switchOff
    /// Registers a security key.
    case addSecurityKey
    /// Revokes the trust in all devices.
    case revokeAll
    /// Ends what `setUp`, `renewBackupCodes`, `switchOff` or an address began.
    case cancel
    /// Hides the backup codes: the user has kept them.
    case hideBackupCodes
  }

  /// What the user enters a code for.
  public enum CodePurpose: Sendable, Hashable {
    /// The first code of the authenticator: from then on the account has a second factor.
    case setUp
    /// New backup codes.
    case backupCodes
    /// The end of the second factor.
    case switchOff
    /// Codes by e-mail to this address, which has received one.
    case email(String)
  }

  /// A secret that the server has offered, and that is in force after its first code.
  public struct Offer: Sendable, Hashable {
    /// The secret in base32, for an authenticator without a camera.
    public let secret: String
    /// The `otpauth` URI, which a QR code shows.
    public let uri: String
    /// The backup codes that come into force with it.
    let backupCodes: [String]
  }

  /// A device that needs no second factor at a sign-in.
  public struct TrustedDevice: Sendable, Hashable, Identifiable {
    /// The number by which it is revoked.
    public let id: Int64
    /// The name that its app gave.
    public let name: String
    /// When it signed in last, ISO 8601 in UTC.
    public let lastUsed: String
    /// When the trust ends, ISO 8601 in UTC.
    public let expires: String
  }

  /// A security key of the account.
  public struct SecurityKey: Sendable, Hashable, Identifiable {
    /// The identifier by which it is removed.
    public let id: String
    /// Its name.
    public let name: String
    /// When it was registered, ISO 8601 in UTC.
    public let created: String
    /// When it signed in last, ISO 8601 in UTC; `nil` before that.
    public let lastUsed: String?
  }

  /// What happens now.
  public internal(set) var phase = Phase.loading
  /// Whether the account has a second factor.
  public internal(set) var isEnabled = false
  /// The kinds of codes that the account has, as the server names them.
  public internal(set) var methods: [String] = []
  /// The number of backup codes that were not used yet.
  public internal(set) var backupCodesRemaining = 0
  /// The devices that the server remembers, oldest first.
  public internal(set) var trustedDevices: [TrustedDevice] = []
  /// The security keys of the account, oldest first.
  public internal(set) var securityKeys: [SecurityKey] = []
  /// Whether the app can use security keys.
  var supportsSecurityKeys = false
  /// The secret to be put into an authenticator; `nil` unless it is being set up.
  public internal(set) var offer: Offer?
  /// New backup codes, which the server never shows again; empty after the user has hidden them.
  public internal(set) var backupCodes: [String] = []
  /// What a code is asked for; `nil` if none is.
  public internal(set) var codePurpose: CodePurpose?
  /// The last error, as a text for the user; `nil` if the last step succeeded.
  public internal(set) var errorText: String?
  /// What the last step has achieved, as a text for the user; `nil` for nothing to say.
  public internal(set) var noticeText: String?
  /// Whether the user must sign in again before the server does this.
  public internal(set) var needsSignIn = false

  /// The state before the screen appears.
  public init() {}

  /// What the user can choose now, in this order.
  public var options: [Option] {
    guard phase == .ready else { return [] }
    if !backupCodes.isEmpty { return [.hideBackupCodes] }
    if codePurpose != nil { return [.cancel] }
    guard isEnabled else { return [.setUp] }
    return [.renewBackupCodes] + (supportsSecurityKeys ? [.addSecurityKey] : []) + [.switchOff]
      + (trustedDevices.isEmpty ? [] : [.revokeAll])
  }

  /// The label of `option`.
  public func label(of option: Option) -> String {
    switch option {
    case .setUp: "Set Up"
    case .renewBackupCodes: "New Backup Codes"
    case .switchOff: "Switch Off"
    case .addSecurityKey: "Add Security Key"
    case .revokeAll: "Revoke All"
    case .cancel: "Cancel"
    case .hideBackupCodes: "I Have Kept Them"
    }
  }

  /// What the screen asks the user for; `nil` if it asks for no code.
  public var codePrompt: String? {
    switch codePurpose {
    case .setUp: "The code that the authenticator shows"
    case .backupCodes: "A code, for new backup codes"
    case .switchOff: "A code, to switch the second factor off"
    case .email(let address): "The code that was sent to \(address)"
    case nil: nil
    }
  }

  /// Whether the user can enter an address for codes by e-mail.
  public var asksEmail: Bool {
    phase == .ready && isEnabled && !methods.contains("email") && codePurpose == nil && backupCodes.isEmpty
  }

  /// The backup codes as the text of a file: one a line, with what they are.
  public var backupCodesFile: String {
    "Backup codes. Each one signs in once.\n\n" + backupCodes.map { $0 + "\n" }.joined()
  }
}

extension FactorState: CustomStringConvertible, CustomReflectable {
  public var description: String { "FactorState(\(phase), \(isEnabled ? "on" : "off"))" }

  /// The phase, and whether there is a second factor: dumps contain no secret and no code, either.
  public var customMirror: Mirror { Mirror(self, children: ["phase": phase, "isEnabled": isEnabled]) }
}

extension FactorState.Offer: CustomStringConvertible, CustomReflectable {
  public var description: String { "a secret for an authenticator" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
