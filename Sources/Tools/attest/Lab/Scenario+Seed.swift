internal import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

extension Scenario {
  /// The ten scenarios of the requirements, in their order. A-S02 has two variants.
  public static let seed: [Scenario] = [
    happyPath, declinedPermission(.userCancel), declinedPermission(.biometryNotAvailable), passcodeByChoice,
    withoutBiometry, withoutSecurity, signInByKey, signInByCode, securityRemoved, securityRestored, switchToPasscode,
  ]

  private static let happyPath = Scenario(
    id: "A-S01", title: "enrols with Face ID", phone: .faceID,
    steps: [
      .app(.opensEnrolment),
      .expect(.enrolmentOffers([.useBiometrics, .usePasscode], title: "Protect your account")),
      .answers([.approve, .approve]),
      .app(.enrolls(.useBiometrics)),
      .expect(.prompts([.faceIDPermission, .biometry(.faceID)])),
      .expect(.enrolled(.secureEnclave, .biometric)),
      .expect(.keys([.userPresence])),
      .expect(.server(.secureEnclave, hasKey: true)),
      .expect(.messages(0)),
    ])

  private static func declinedPermission(_ refusal: PhoneSettings.PermissionRefusal) -> Scenario {
    var phone = PhoneSettings.faceID
    phone.permissionRefusal = refusal
    return Scenario(
      id: "A-S02", title: "does not allow Face ID, reported as \(refusal.rawValue), and uses the passcode",
      phone: phone,
      steps: [
        .app(.opensEnrolment),
        .answers([.decline]),
        .app(.enrolls(.useBiometrics)),
        .expect(.prompts([.faceIDPermission])),
        .expect(.enrolmentOffers([.usePasscode], title: "Use Passcode Instead?")),
        .expect(.keys([])),
        .answers([.approve]),
        .app(.enrolls(.usePasscode)),
        .expect(.prompts([.passcode])),
        .expect(.enrolled(.secureEnclave, .passcode)),
        .expect(.keys([.devicePasscode])),
        .expect(.server(.secureEnclave, hasKey: true)),
      ])
  }

  private static let passcodeByChoice = Scenario(
    id: "A-S03", title: "chooses the passcode although Face ID is set up", phone: .faceID,
    steps: [
      .app(.opensEnrolment),
      .answers([.approve]),
      .app(.enrolls(.usePasscode)),
      .expect(.prompts([.passcode])),
      .expect(.enrolled(.secureEnclave, .passcode)),
      .expect(.keys([.devicePasscode])),
      .expect(.server(.secureEnclave, hasKey: true)),
    ])

  private static let withoutBiometry = Scenario(
    id: "A-S04", title: "enrols on a phone without an enrolled face", phone: .passcodeOnly,
    steps: [
      .app(.opensEnrolment),
      .expect(.enrolmentOffers([.usePasscode], title: "Passcode Authentication")),
      .expect(.enrolmentSays("Using passcode authentication")),
      .answers([.approve]),
      .app(.enrolls(.usePasscode)),
      .expect(.prompts([.passcode])),
      .expect(.enrolled(.secureEnclave, .passcode)),
      .expect(.server(.secureEnclave, hasKey: true)),
    ])

  private static let withoutSecurity = Scenario(
    id: "A-S05", title: "registers for codes on a phone without a passcode", phone: .unprotected,
    steps: [
      .app(.opensEnrolment),
      .expect(.enrolmentOffers([.openSettings, .useSMS], title: "No device security")),
      .expect(.enrolmentSays("Please set up device passcode in Settings")),
      .app(.enrolls(.openSettings)),
      .expect(.settingsAppOpened),
      .app(.registersNumber),
      .expect(.prompts([])),
      .expect(.keys([])),
      .expect(.enrolled(.smsOTP, nil)),
      .expect(.server(.smsOTP, hasKey: false)),
    ])

  private static let signInByKey = Scenario(
    id: "A-S06", title: "signs in with Face ID", phone: .faceID,
    steps: enrolsWithFaceID + [
      .answers([.approve]),
      .app(.signsIn(.signIn)),
      .expect(.prompts([.biometry(.faceID)])),
      .expect(.signedIn),
      .expect(.lastUsed(true)),
      .expect(.messages(0)),
    ])

  private static let signInByCode = Scenario(
    id: "A-S07", title: "signs in with a code, of which one message is sent", phone: .unprotected,
    steps: [
      .app(.opensEnrolment),
      .app(.registersNumber),
      .expect(.enrolled(.smsOTP, nil)),
      .app(.signsIn(.signIn)),
      .expect(.awaitsCode),
      .app(.asksForCodeAgain),
      .app(.entersCode),
      .expect(.signedIn),
      .expect(.messages(1)),
      .expect(.prompts([])),
    ])

  private static let securityRemoved = Scenario(
    id: "A-S08", title: "removes Face ID and the passcode: the app falls back to codes", phone: .faceID,
    steps: enrolsWithFaceID + losesSecurity + signsInByCode + [.expect(.deletedKeyIsRefused)])

  private static let securityRestored = Scenario(
    id: "A-S09", title: "sets Face ID up again and upgrades", phone: .faceID,
    steps: enrolsWithFaceID + losesSecurity + signsInByCode + [
      .owner(.setsPasscode),
      .owner(.enrolsBiometry),
      .app(.opensSettings),
      .expect(.settingsTitle("Upgrade to biometric security?")),
      .answers([.approve]),
      .app(.changes(.acceptUpgrade)),
      .expect(.prompts([.biometry(.faceID)])),
      .expect(.enrolled(.secureEnclave, .biometric)),
      .expect(.keys([.userPresence])),
      .expect(.server(.secureEnclave, hasKey: true)),
      .expect(.deletedKeyIsRefused),
      .answers([.approve]),
      .app(.signsIn(.signIn)),
      .expect(.signedIn),
    ])

  private static let switchToPasscode = Scenario(
    id: "A-S10", title: "switches to the passcode: the old key signs in no more", phone: .faceID,
    steps: enrolsWithFaceID + [
      .answers([.approve]),
      .app(.signsIn(.signIn)),
      .expect(.signedIn),
      .expect(.prompts([.biometry(.faceID)])),
      .answers([.approve]),
      .app(.opensSettings),
      .app(.changes(.usePasscode)),
      .expect(.prompts([.passcode])),
      .expect(.enrolled(.secureEnclave, .passcode)),
      .expect(.keys([.devicePasscode])),
      .expect(.server(.secureEnclave, hasKey: true)),
      .expect(.deletedKeyIsRefused),
      .answers([.approve]),
      .app(.signsIn(.signIn)),
      .expect(.prompts([.passcode])),
      .expect(.signedIn),
    ])

  // MARK: Parts that scenarios share

  static let enrolsWithFaceID: [Step] = [
    .app(.opensEnrolment),
    .answers([.approve, .approve]),
    .app(.enrolls(.useBiometrics)),
    .expect(.enrolled(.secureEnclave, .biometric)),
    .expect(.prompts([.faceIDPermission, .biometry(.faceID)])),
  ]

  static let losesSecurity: [Step] = [
    .owner(.removesBiometry),
    .owner(.removesPasscode),
    .app(.opensSettings),
    .expect(.alert("Critical: No device security")),
    .expect(.enrolled(.smsOTP, nil)),
    .expect(.keys([])),
    .expect(.server(.smsOTP, hasKey: false)),
  ]

  private static let signsInByCode: [Step] = [
    .app(.signsIn(.signIn)),
    .expect(.awaitsCode),
    .app(.entersCode),
    .expect(.signedIn),
    .expect(.prompts([])),
  ]
}
