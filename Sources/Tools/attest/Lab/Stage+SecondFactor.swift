internal import ByteCoding
internal import Cryptography
internal import MFAClient
internal import MFAViewModels
internal import MFAWire

/// What the user has kept of a second factor: the secret is in an authenticator, and the backup codes are on paper.
struct KeptFactor {
  var secret: [UInt8] = []
  var backupCodes: [String] = []
  var usedBackupCode: String?
  /// The step of the authenticator's last code.
  var lastStep: Int64 = 0

  /// The code of a step that was not used yet (RFC 6238, SHA-256, six digits, 30 seconds). If the present one was used,
  /// it is that of the next step, which servers accept too.
  mutating func nextCode(at now: Timestamp) -> String {
    lastStep = max(now.seconds / 30, lastStep + 1)
    let counter = (0..<8).map { UInt8(truncatingIfNeeded: lastStep >> (56 - 8 * $0)) }
    let code = HMACSHA256.authenticate(counter, key: secret)
    let offset = Int(code[31] & 0xF)
    let number = code[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    let digits = String(number % 1_000_000)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }

  /// The bytes of a text in base32 (RFC 4648); `nil` if it is not one.
  static func secret(_ text: String) -> [UInt8]? {
    var (bytes, bits, count) = ([UInt8](), UInt32(0), 0)
    for character in text.utf8 {
      guard let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8.enumerated().first(where: { $1 == character })?.offset
      else { return nil }
      (bits, count) = (bits << 5 | UInt32(value), count + 5)
      guard count >= 8 else { continue }
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count - 8)))
      (bits, count) = (bits & ((1 << UInt32(count - 8)) - 1), count - 8)
    }
    return bytes
  }
}

extension Stage {
  /// The address of the user.
  private var mailbox: String { "\(identity.username)@example.com".lowercased() }

  /// Offers a secret for SHA-256, which this authenticator has, and confirms it by its first code.
  func setUpFactor() async throws(ScenarioFailure) {
    let offer = try await call(MFAOperations.enrollAuthenticator, AuthenticatorRequest(algorithm: "SHA256"))
    guard let secret = KeptFactor.secret(offer.secret) else {
      throw ScenarioFailure(reason: "the secret is not base32")
    }
    var kept = KeptFactor(secret: secret, backupCodes: offer.backup_codes)
    let code = kept.nextCode(at: .now())
    self.kept = kept
    _ = try await call(MFAOperations.confirmAuthenticator, CodeRequest(code: code))
  }

  func switchFactorOff(by kind: Scenario.FactorCode) async throws(ScenarioFailure) {
    await factor.appear()
    await factor.choose(.switchOff)
    await factor.enter(code: try await code(kind))
    if let text = await factor.state.errorText { throw ScenarioFailure(reason: text) }
  }

  /// Gives the second factor on the challenge for the session of the last sign-in.
  func giveFactor(_ kind: Scenario.FactorCode, remembering: Bool) async throws(ScenarioFailure) {
    let challenge = try await challenge()
    await challenge.select(kind.tab)
    guard await challenge.state.selectedTab == kind.tab else {
      throw ScenarioFailure(reason: "the challenge has no tab \(kind.tab.title)")
    }
    if kind == .email { await challenge.sendEmail() }
    await challenge.setRemembersDevice(remembering)
    await challenge.enter(try await code(kind))
    await challenge.verify()
    let state = await challenge.state
    guard state.phase == .verified else { throw ScenarioFailure(reason: state.errorText ?? "\(state.phase)") }
    hasGivenFactor = true
  }

  func confirmEmail() async throws(ScenarioFailure) {
    await factor.appear()
    await factor.enter(email: mailbox)
    await factor.enter(code: try await code(.email))
    if let text = await factor.state.errorText { throw ScenarioFailure(reason: text) }
  }

  func addSecurityKey() async throws(ScenarioFailure) {
    await factor.appear()
    await watched { await self.factor.choose(.addSecurityKey) }
    let state = await factor.state
    guard state.securityKeys.count == 1 else { throw ScenarioFailure(reason: state.errorText ?? "no key is listed") }
  }

  func useSecurityKey() async throws(ScenarioFailure) {
    let challenge = try await challenge()
    await challenge.select(.securityKey)
    await watched { await challenge.useSecurityKey() }
    let state = await challenge.state
    guard state.phase == .verified else { throw ScenarioFailure(reason: state.errorText ?? "\(state.phase)") }
    hasGivenFactor = true
  }

  func revokeTrust() async throws(ScenarioFailure) {
    await factor.appear()
    guard await factor.state.options.contains(.revokeAll) else {
      throw ScenarioFailure(reason: await factor.state.errorText ?? "the server remembers no device")
    }
    await factor.choose(.revokeAll)
    if let text = await factor.state.errorText { throw ScenarioFailure(reason: text) }
  }

  private func challenge() async throws(ScenarioFailure) -> ChallengeViewModel {
    guard await signIn.state.phase == .signedIn(needsSecondFactor: true), let tokens = await signIn.tokens else {
      throw ScenarioFailure(reason: "the session needs no second factor")
    }
    let challenge = ChallengeViewModel(services: services, token: tokens.token)
    await challenge.appear(at: .now())
    return challenge
  }

  private func code(_ kind: Scenario.FactorCode) async throws(ScenarioFailure) -> String {
    switch kind {
    case .authenticator: return kept.nextCode(at: .now())
    case .email: return try await newestCode(to: mailbox)
    case .backupCode:
      guard !kept.backupCodes.isEmpty else { throw ScenarioFailure(reason: "the user has no backup code") }
      let code = kept.backupCodes.removeFirst()
      kept.usedBackupCode = code
      return code
    }
  }

  // MARK: Expectations

  /// Whether the session of the last sign-in has no rights yet.
  func awaitsFactor() async -> Bool {
    await signIn.state.phase == .signedIn(needsSecondFactor: true) && !hasGivenFactor
  }

  func factorDifference(_ isOn: Bool, _ backupCodes: Int) async throws(ScenarioFailure) -> String? {
    await factor.appear()
    let state = await factor.state
    if let text = state.errorText { return text }
    guard state.isEnabled != isOn || state.backupCodesRemaining != backupCodes else { return nil }
    return "\(state.isEnabled ? "on" : "off") with \(state.backupCodesRemaining) backup codes"
  }

  /// Gives the backup code that was used last once more, to switch the second factor off.
  func usedCodeDifference() async throws(ScenarioFailure) -> String? {
    guard let code = kept.usedBackupCode else { return "no backup code was used" }
    await factor.appear()
    await factor.choose(.switchOff)
    await factor.enter(code: code)
    let isRefused = await factor.state.errorText == "Invalid code. Please try again."
    await factor.choose(.cancel)
    return isRefused ? nil : await factor.state.errorText ?? "the used code is accepted"
  }
}

extension Scenario.FactorCode {
  /// The tab of the challenge.
  fileprivate var tab: ChallengeState.Tab {
    switch self {
    case .authenticator: .totp
    case .email: .email
    case .backupCode: .backup
    }
  }
}
