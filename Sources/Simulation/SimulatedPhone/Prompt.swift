public import MFAClient

/// What the phone shows on its screen until its owner answers.
public struct Prompt: Sendable, Hashable, Identifiable {
  /// What the prompt asks for.
  public enum Kind: Sendable, Hashable {
    /// Asks whether the app may use Face ID. iOS shows it once.
    case faceIDPermission
    /// Asks for a face or a finger.
    case biometry(BiometryType)
    /// Asks for the passcode.
    case passcode
    /// Asks to touch the security key at the phone.
    case securityKey
  }

  /// Counts from 1 over the life of the phone.
  public let id: Int
  /// What it asks for.
  public let kind: Kind
  /// The text of the app: the reason of the call, or the purpose string of Face ID.
  public let reason: String
}

/// What the owner of the phone does with a prompt.
public enum PromptAnswer: Sendable, Hashable {
  /// Allows, shows the enrolled face or finger, enters the passcode, or touches the security key.
  case approve
  /// Taps "Don't Allow" or "Cancel".
  case decline
  /// Shows another face or finger, or enters a wrong passcode.
  case fail
  /// Taps "Enter Passcode" on a prompt for biometry.
  case usePasscode
  /// The system ends the prompt with this error.
  case interrupt(LocalAuthenticationCode)
}
