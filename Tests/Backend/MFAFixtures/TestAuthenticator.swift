import ByteCoding
internal import MFADomain

/// An authenticator app with one secret, and the user's backup codes.
public struct TestAuthenticator: Sendable {
  public let secret: [UInt8]
  public let backupCodes: [String]
  public let clock: ManualClock

  /// Returns the code that the app shows `steps` steps from now. A negative number gives an earlier code.
  public func code(_ steps: Int64 = 0) -> String {
    let parameters = TOTPParameters.standard
    return parameters.code(secret, step: parameters.step(at: clock.now) + steps)
  }
}

extension TestBackend {
  /// Starts the setup of an authenticator without confirming it.
  public func offerAuthenticator(_ phone: TestPhone, token: String) async throws -> TestAuthenticator {
    let offer = try await post("/auth/mfa/enroll", [:], as: phone.app, token: token)
    var codes: [String] = []
    if case .array(let texts) = offer["backup_codes"] { codes = texts.compactMap(\.text) }
    return TestAuthenticator(
      secret: Self.base32(offer["secret"]?.text ?? ""), backupCodes: codes, clock: clock)
  }

  /// Enrols the phone, signs in and sets up an authenticator. Then advances the clock by one step, so that the next
  /// code is a new one.
  public func setUp(_ phone: TestPhone) async throws -> (token: String, authenticator: TestAuthenticator) {
    let token = try await token(phone)
    let authenticator = try await offerAuthenticator(phone, token: token)
    _ = try await post(
      "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code())], as: phone.app, token: token)
    clock.advance(by: .seconds(30))
    return (token, authenticator)
  }

  /// Signs in with the key. Returns the token of the session that waits for the second factor.
  public func pendingToken(_ phone: TestPhone) async throws -> String {
    try await signIn(phone)["token"]?.text ?? ""
  }

  public func verifyLogin(
    _ code: String, _ phone: TestPhone, token: String, _ more: [String: JSONValue] = [:]
  ) async throws -> Answer {
    try await post(
      "/auth/mfa/verify-login", .object(more.merging(["code": .string(code)]) { $1 }), as: phone.app, token: token)
  }

  private static func base32(_ text: String) -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    var (bytes, buffer, bits): ([UInt8], Int, Int) = ([], 0, 0)
    for character in text {
      guard let value = alphabet.firstIndex(of: character) else { return [] }
      buffer = (buffer << 5 | value) & 0xFFFF
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
      }
    }
    return bytes
  }
}
