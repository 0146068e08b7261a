#if canImport(Security) && canImport(LocalAuthentication)
  internal import Dispatch
  internal import Foundation
  internal import LocalAuthentication

  /// Runs calls that block on a queue, because Swift's threads must not wait for a user.
  struct BlockingCalls: Sendable {
    /// One call after another: for calls without a prompt.
    static let serial = BlockingCalls(queue: DispatchQueue(label: "mfa.keychain"))
    /// Each call at once: one that waits for a user does not delay the others.
    static let concurrent = BlockingCalls(queue: DispatchQueue(label: "mfa.prompts", attributes: .concurrent))

    private let queue: DispatchQueue

    private init(queue: DispatchQueue) { self.queue = queue }

    /// Returns the result of `body`, which runs on the queue.
    func run<Value: Sendable, Failure: Error>(
      _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
      let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
        queue.async { continuation.resume(returning: Result { () throws(Failure) in try body() }) }
      }
      return try result.get()
    }
  }

  // `LAContext` may be used and invalidated on any thread. After `init` nothing else of it changes.
  /// The context of one prompt. A cancelled task invalidates it, which dismisses the prompt.
  struct PromptContext: @unchecked Sendable {
    let context = LAContext()

    /// A context whose prompt shows `reason`.
    init(reason: String) { context.localizedReason = reason }

    /// A context that shows no prompt: calls that need one fail.
    init() { context.interactionNotAllowed = true }

    /// Calls `body`, and dismisses the prompt if the task is cancelled. The error is then `LAError.appCancel`, whatever
    /// the system reports.
    func dismissingWhenCancelled<Value: Sendable>(
      _ body: @Sendable () async throws(DeviceSecurityError) -> Value
    ) async throws(DeviceSecurityError) -> Value {
      let result: Result<Value, DeviceSecurityError> = await withTaskCancellationHandler {
        do throws(DeviceSecurityError) {
          return .success(try await body())
        } catch {
          return .failure(Task.isCancelled ? .localAuthentication(.appCancel) : error)
        }
      } onCancel: {
        context.invalidate()
      }
      return try result.get()
    }

    /// Shows a prompt and returns when the user has approved it.
    func evaluate(_ policy: LAPolicy, reason: String) async throws(DeviceSecurityError) {
      let result: Result<Void, DeviceSecurityError> = await withCheckedContinuation { continuation in
        context.evaluatePolicy(policy, localizedReason: reason) { isApproved, error in
          if isApproved {
            continuation.resume(returning: .success(()))
          } else {
            let error = error.map(DeviceSecurityError.init(systemError:))
            continuation.resume(returning: .failure(error ?? .localAuthentication(.authenticationFailed)))
          }
        }
      }
      try result.get()
    }

    /// Throws why no prompt of `policy` can be shown. Shows none.
    func require(_ policy: LAPolicy) throws(DeviceSecurityError) {
      var error: NSError?
      guard !context.canEvaluatePolicy(policy, error: &error) else { return }
      throw error.map { DeviceSecurityError(systemError: $0) } ?? .localAuthentication(.biometryNotAvailable)
    }
  }

  extension DeviceSecurityError {
    /// Translates an error of LocalAuthentication or Security.
    init(systemError error: any Error) {
      self = Self.known(error as NSError) ?? .keychain(status: -2070)
    }

    /// An error of a known domain, also if another error contains it: CryptoTokenKit wraps refused prompts. `nil` for
    /// other errors, which the keychain calls `errSecInternalComponent` (-2070).
    private static func known(_ error: NSError) -> Self? {
      switch error.domain {
      case LAErrorDomain: .localAuthentication(code: error.code)
      case NSOSStatusErrorDomain: Self(status: OSStatus(truncatingIfNeeded: error.code))
      default: (error.userInfo[NSUnderlyingErrorKey] as? NSError).flatMap(known)
      }
    }

    /// Translates a status of the keychain other than `errSecSuccess`.
    init(status: OSStatus) { self = status == -25300 ? .keyMissing : .keychain(status: status) }
  }
#endif
