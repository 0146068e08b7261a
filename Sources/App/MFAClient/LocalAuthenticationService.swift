#if canImport(Security) && canImport(LocalAuthentication)
  internal import LocalAuthentication

  /// The prompts of a real device: Apple's `LAContext`.
  ///
  /// Each call has a context of its own, so that an approval is never used twice.
  public struct LocalAuthenticationService: BiometricService {
    /// Creates a service for the device that the app runs on.
    public init() {}

    /// What the settings, the user's permission and a lockout allow now. Shows no prompt. Without a passcode: `.none`.
    public func capability() async -> DeviceCapability {
      await BlockingCalls.serial.run {
        let context = LAContext()
        guard context.canEvaluatePolicy(.deviceOwnerAuthentication, error: nil) else { return .none }
        let usesBiometry = context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
        return usesBiometry ? .biometricsAvailable : .passcodeOnly
      }
    }

    /// The sensor. One that this version does not know is reported as none; keys work with it.
    public func biometryType() async -> BiometryType {
      await BlockingCalls.serial.run {
        let context = LAContext()
        // The type is known after this call, also if the call returns false.
        _ = context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
        if #available(iOS 17, macOS 14, *), context.biometryType == .opticID { return .iris }
        return switch context.biometryType {
        case .faceID: .faceID
        case .touchID: .touchID
        default: .none
        }
      }
    }

    /// Shows a prompt until the user has approved it, or the task is cancelled.
    public func evaluate(_ policy: BiometricPolicy, reason: String) async throws(DeviceSecurityError) {
      let prompt = PromptContext(reason: reason)
      try await prompt.dismissingWhenCancelled { () async throws(DeviceSecurityError) in
        try await prompt.evaluate(policy.system, reason: reason)
      }
    }
  }

  extension BiometricPolicy {
    fileprivate var system: LAPolicy {
      switch self {
      case .biometrics: .deviceOwnerAuthenticationWithBiometrics
      case .biometricsOrPasscode: .deviceOwnerAuthentication
      }
    }
  }
#endif
