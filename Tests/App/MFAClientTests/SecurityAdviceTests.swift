import MFAClient
import Testing

@Suite("Advice for errors of prompts and keys")
struct SecurityAdviceTests {
  private func advice(
    _ error: DeviceSecurityError, in flow: SecurityFlow = .enrolment,
    capability: DeviceCapability = .biometricsAvailable
  ) -> SecurityAdvice {
    error.advice(in: flow, capability: capability)
  }

  @Test(
    "A-134 A-050 A-051 A-052 A-054 A-055 the codes of the specification have its texts and its actions",
    arguments: [
      (LocalAuthenticationCode.userCancel, "User cancelled - offer passcode", SecurityAdvice.Action.offerPasscode),
      (.biometryNotAvailable, "Biometrics disabled - use passcode", .usePasscode),
      (.biometryNotEnrolled, "No biometrics enrolled", .usePasscode),
      (.biometryLockout, "Too many attempts - use passcode", .usePasscode),
      (.authenticationFailed, "Authentication failed - retry", .retry),
    ])
  func texts(_ code: LocalAuthenticationCode, _ text: String, _ action: SecurityAdvice.Action) {
    let advice = advice(.localAuthentication(code))
    #expect(advice.text == text)
    #expect(advice.action == action)
  }

  @Test("A-053 a device without passcode is blocked and offered codes by SMS", arguments: SecurityFlow.allCases)
  func noSecurity(_ flow: SecurityFlow) {
    let advice = advice(.localAuthentication(.passcodeNotSet), in: flow, capability: .none)
    #expect(advice.text == "Critical: No device security")
    #expect(advice.action == .blockAndOfferSMS)
  }

  @Test("A-056 the codes have the numbers of Apple's LAError")
  func numbers() {
    let numbers = LocalAuthenticationCode.allCases.map(\.rawValue)
    #expect(numbers == [-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -1004])
  }

  @Test(
    "T-13 A-056 A-132 every code, known or not, has a text of one line and a possible action in every flow",
    arguments: SecurityFlow.allCases, DeviceCapability.allCases)
  func everyCode(_ flow: SecurityFlow, _ capability: DeviceCapability) {
    let known = LocalAuthenticationCode.allCases.map { DeviceSecurityError.localAuthentication($0) }
    let unknown = [0, 1, -15, -1003, .min, .max].map { DeviceSecurityError.localAuthentication(code: $0) }
    let keychain: [DeviceSecurityError] = [
      .keychainCancelled, .keychainAuthenticationFailed, .keychain(status: .min), .keychain(status: 0), .keyMissing,
    ]
    for error in known + unknown + keychain {
      let advice = advice(error, in: flow, capability: capability)
      #expect(!advice.text.isEmpty && !advice.text.contains("\n") && advice.text.utf8.count <= 60, "\(error)")
      // A passcode that does not exist cannot be used.
      #expect((advice.action == .blockAndOfferSMS) == (capability == .none), "\(error)")
      #expect(!"\(error)".isEmpty)
    }
  }

  @Test("A status of the keychain means the same as the code of LocalAuthentication")
  func statuses() {
    #expect(advice(.keychainCancelled) == advice(.localAuthentication(.userCancel)))
    #expect(advice(.keychainAuthenticationFailed) == advice(.localAuthentication(.authenticationFailed)))
    #expect(DeviceSecurityError.keychainCancelled == .keychain(status: -128))
    #expect(DeviceSecurityError.keychainAuthenticationFailed == .keychain(status: -25293))
  }

  @Test("A-036 a missing key is enrolled again, and during enrolment made again")
  func missingKey() {
    #expect(advice(.keyMissing, in: .signIn).action == .enrollAgain)
    #expect(advice(.keyMissing, in: .methodChange).action == .enrollAgain)
    #expect(advice(.keyMissing, in: .enrolment).action == .retry)
  }

  @Test("A-04F an error is described by its code's name and number")
  func descriptions() {
    #expect("\(DeviceSecurityError.localAuthentication(.userCancel))" == "LAError.userCancel (-2)")
    #expect("\(DeviceSecurityError.localAuthentication(code: -99))" == "LAError.unknown (-99)")
    #expect("\(DeviceSecurityError.keychain(status: -25293))" == "OSStatus -25293")
  }

  @Test("A-102 A-100 A-101 methods have the names of the protocol")
  func names() {
    #expect(MFAMethod.allCases.map(\.rawValue) == ["secureEnclave", "smsOTP"])
    #expect(AuthMethod.allCases.map(\.rawValue) == ["biometric", "passcode"])
    #expect(DeviceCapability.allCases.map(\.rawValue) == ["biometricsAvailable", "passcodeOnly", "none"])
    #expect(KeyProtection.allCases.map(\.authMethod) == [.biometric, .passcode, .biometric])
  }

  @Test("A-034 tags of keys for biometry and passcode differ")
  func tags() {
    #expect(KeyTag.biometric(of: "com.example.app").rawValue == "com.example.app.mfa.key.biometric")
    #expect(KeyTag.passcode(of: "com.example.app").rawValue == "com.example.app.mfa.key.passcode")
  }
}
