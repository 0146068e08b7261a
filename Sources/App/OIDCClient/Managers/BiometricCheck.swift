/// Asks the device whether the person is its owner, before stored tokens are read.
///
/// Everything works without one. On Apple's platforms, `LocalAuthenticationCheck` asks for Face ID, Touch ID or the passcode.
public protocol BiometricCheck: Sendable {
  /// Asks the person, and blocks until the answer.
  ///
  /// - Parameter reason: What the device shows, as a part of a sentence: "read your sign-in".
  /// - Throws: `.notRecognised`.
  func check(reason: String) throws(TokenStoreError)
}

#if canImport(LocalAuthentication)
  internal import Foundation
  internal import LocalAuthentication
  internal import Locking

  /// Asks for Face ID or Touch ID, and for the passcode where there is none.
  public struct LocalAuthenticationCheck: BiometricCheck {
    /// Creates a check.
    public init() {}

    public func check(reason: String) throws(TokenStoreError) {
      let answer = LockedValue(false)
      let done = DispatchSemaphore(value: 0)
      LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: reason) { isOwner, _ in
        answer.withLock { $0 = isOwner }
        done.signal()
      }
      done.wait()
      guard answer.withLock({ $0 }) else { throw .notRecognised }
    }
  }
#endif
