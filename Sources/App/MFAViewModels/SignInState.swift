public import MFAClient

/// What the sign-in screen shows. Changed only by events; compares by value.
public struct SignInState: Sendable, Hashable {
  /// What happens now.
  public enum Phase: Sendable, Hashable {
    /// The user can sign in.
    case ready
    /// The app asks the server for a challenge.
    case requestingChallenge
    /// The phone shows a prompt for the key.
    case signing
    /// The app sends the signature or the code.
    case verifying
    /// The user enters the code that the server has sent.
    case enteringCode
    /// The user is signed in. `needsSecondFactor` says that the session has no rights before the second factor.
    case signedIn(needsSecondFactor: Bool)
  }

  /// A choice that the screen offers now.
  public enum Option: String, Sendable, Hashable, CaseIterable {
    /// Starts the sign-in, or starts it again.
    case signIn
    /// Signs in by a code, for example because the key is gone.
    case useSMS
    /// Enrols this device again, on the enrolment screen. An enrolment of another app instance is forgotten.
    case enrollAgain
    /// The Settings app, in which the user sets a passcode.
    case openSettings
  }

  /// Where the server has the device. It sends codes to this app instance only if it has the device for it.
  enum Enrolment: Sendable, Hashable {
    /// For this app instance.
    case here
    /// For another app instance.
    case elsewhere
    /// For no app instance.
    case nowhere
  }

  /// The name of the account.
  public internal(set) var username: String
  /// What happens now.
  public internal(set) var phase = Phase.ready
  /// The last error, as a text for the user; `nil` if the last step succeeded.
  public internal(set) var errorText: String?
  /// What the last error offers, in addition to another attempt.
  public internal(set) var advice: SecurityAdvice.Action?
  /// Where the device is enrolled, as far as the last error says.
  var enrolment = Enrolment.here

  /// The state before a sign-in.
  public init(username: String = "") { self.username = username }

  /// What the user can choose now, in this order.
  public var options: [Option] {
    switch phase {
    case .ready:
      switch advice {
      case .enrollAgain: enrolment == .here ? [.enrollAgain, .useSMS] : [.enrollAgain]
      case .blockAndOfferSMS: [.openSettings, .useSMS]
      case .offerPasscode, .usePasscode, .retry: [.signIn, .useSMS]
      case nil: [.signIn]
      }
    case .enteringCode: [.signIn]
    case .requestingChallenge, .signing, .verifying, .signedIn: []
    }
  }
}
