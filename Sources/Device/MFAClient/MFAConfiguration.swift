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

  /// The API of a backend on the developer's machine, without a gate. Behind a gate, the URL is that of the gate, with
  /// `https`: a session refuses any other.
  public static let baseURL = "http://localhost:8080/api/v1"

  /// How long a call may take, in seconds, with the assertion and a possible registration.
  public static let timeout: TimeInterval = 30
}
