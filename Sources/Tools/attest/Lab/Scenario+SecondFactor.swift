internal import MFAClient
internal import MFAViewModels
internal import SimulatedPhone

extension Scenario {
  /// All scenarios: those of the requirements, and those of the second factor.
  public static let all: [Scenario] = seed + secondFactor

  /// The second factor: its set-up, each kind of code, a security key, a remembered device, and a phone that has lost its
  /// keys.
  public static let secondFactor: [Scenario] = [setUp, eachKindOfCode, securityKey, rememberedDevice, lostPhone]

  private static let setUp = Scenario(
    id: "B-080", title: "sets up the second factor, and switches it off", phone: .faceID,
    steps: enrolsWithFaceID + signsInByKey + [
      .expect(.signedIn),
      .expect(.factor(isOn: false, backupCodes: 0)),
      .app(.setsUpFactor),
      .expect(.factor(isOn: true, backupCodes: 10)),
      .app(.switchesFactorOff(.backupCode)),
      .expect(.factor(isOn: false, backupCodes: 0)),
    ] + signsInByKey + [.expect(.signedIn)])

  private static let eachKindOfCode = Scenario(
    id: "B-051", title: "gives the second factor by an authenticator, an e-mail and a backup code", phone: .faceID,
    steps: enrolsWithFaceID + signsInByKey + [.app(.setsUpFactor)]
      + signsInByKey + [
        .expect(.awaitsFactor),
        .app(.givesFactor(.authenticator, remembering: false)),
        .expect(.signedIn),
        .app(.confirmsEmail),
      ] + signsInByKey + [
        .expect(.awaitsFactor),
        .app(.givesFactor(.email, remembering: false)),
        .expect(.signedIn),
      ] + signsInByKey + [
        .expect(.awaitsFactor),
        .app(.givesFactor(.backupCode, remembering: false)),
        .expect(.signedIn),
        .expect(.factor(isOn: true, backupCodes: 9)),
      ])

  private static let securityKey = Scenario(
    id: "A-223", title: "gives the second factor by a security key, by its touch alone", phone: .faceID,
    steps: enrolsWithFaceID + signsInByKey + [
      .app(.setsUpFactor),
      .answers([.approve]),
      .app(.addsSecurityKey),
      .expect(.prompts([.securityKey])),
    ] + signsInByKey + [
      .expect(.awaitsFactor),
      .answers([.approve]),
      .app(.usesSecurityKey),
      .expect(.prompts([.securityKey])),
      .expect(.signedIn),
      .expect(.factor(isOn: true, backupCodes: 10)),
    ])

  private static let rememberedDevice = Scenario(
    id: "B-077", title: "lets this device be remembered, and is asked again after that is revoked", phone: .faceID,
    steps: enrolsWithFaceID + signsInByKey + [.app(.setsUpFactor)]
      + signsInByKey + [
        .app(.givesFactor(.authenticator, remembering: true)),
        .expect(.signedIn),
      ] + signsInByKey + [
        .expect(.signedIn),
        .app(.revokesTrust),
      ] + signsInByKey + [
        .expect(.awaitsFactor),
        .app(.givesFactor(.backupCode, remembering: false)),
        .expect(.signedIn),
      ])

  private static let lostPhone = Scenario(
    id: "B-053", title: "signs in by a backup code without key and authenticator; the code is used up", phone: .faceID,
    steps: enrolsWithFaceID + signsInByKey + [.app(.setsUpFactor)] + losesSecurity + [
      .app(.signsIn(.signIn)),
      .app(.entersCode),
      .expect(.awaitsFactor),
      .app(.givesFactor(.backupCode, remembering: false)),
      .expect(.signedIn),
      .expect(.factor(isOn: true, backupCodes: 9)),
      .expect(.usedBackupCodeIsRefused),
    ])

  private static let signsInByKey: [Step] = [
    .answers([.approve]),
    .app(.signsIn(.signIn)),
    .expect(.prompts([.biometry(.faceID)])),
  ]
}
