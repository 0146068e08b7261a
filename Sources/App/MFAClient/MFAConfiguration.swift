public import Foundation

/// The defaults of an app.
public struct MFAConfiguration: Sendable {
  /// Whether keys are made in the Secure Enclave, which a simulator does not have.
  public static var useSecureEnclave: Bool {
    #if targetEnvironment(simulator)
      false
    #else
      true
    #endif
  }

  /// The path of the API behind a gate. Its host is the gate's, with `https`, also on a developer's machine: the backend
  /// answers gates alone.
  public static let path = "/api/v1"

  /// How long a call may take, in seconds, with the assertion and a possible registration.
  public static let timeout: TimeInterval = 30
}
