import Foundation
import MFADomain
import MFAFixtures
import TestSupport
import Testing

extension ConsoleProcess {
  /// Starts a console for the backend of `place`.
  init(
    _ place: BackendInstallation, _ arguments: [String] = [], environment: [String: String?] = ["SUDO_UID": nil]
  ) async throws {
    try await self.init("mfa-backend", arguments + ["-c", place.file], environment: environment)
  }
}

/// An account at a running backend, with everything that pages show, and the secrets that no page may have.
struct ConsoleAccount {
  let phone: TestPhone
  /// The id that pages have.
  let id: String
  let secrets: [String]

  var path: String { "/accounts/\(id)" }
}

extension BackendInstallation {
  /// Sends a request of an app to `backend`.
  func post(
    _ path: String, _ body: JSONValue, at backend: BackendProcess, as app: AppInstance, token: String? = nil,
    _ options: [String] = []
  ) async throws -> CurlAnswer {
    try await curl(
      "POST", "http://127.0.0.1:\(backend.port ?? 0)/api/v1\(path)", body, token: token,
      ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: app))"] + options)
  }

  /// Enrols a phone, and returns its account as the admin socket has it.
  func enrolled(
    _ phone: TestPhone, model: String = "iPhone 15 Pro", at backend: BackendProcess
  ) async throws -> ConsoleAccount {
    var body = try #require(phone.enrolment().members)
    body["deviceModel"] = .string(model)
    let answer = try await post("/mfa/enroll", .object(body), at: backend, as: phone.app)
    try #require(answer.status == 200, "\(answer.text)")
    return ConsoleAccount(
      phone: phone, id: try await id(of: phone.username), secrets: [phone.number, phone.publicKey])
  }

  /// The id of an account.
  func id(of name: String) async throws -> String {
    let name = try #require(name.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
    return try #require(try await admin("GET", "/v1/account?name=\(name)")["account"]?["id"]?.text)
  }

  /// Signs in by the key of the phone, and returns the token.
  func signIn(_ phone: TestPhone, at backend: BackendProcess) async throws -> String {
    let challenge = try await post("/auth/initiate", phone.naming, at: backend, as: phone.app)
    let proof: JSONValue = [
      "username": .string(phone.username), "deviceId": .string(phone.deviceID),
      "challengeId": challenge["challengeId"] ?? .null,
      "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
    ]
    let answer = try await post("/auth/verify-signature", proof, at: backend, as: phone.app)
    return try #require(answer["token"]?.text, "\(answer.text)")
  }

  /// An account with an authenticator, an added app named Tablet, backup codes, a session, a trusted device named
  /// `name`, wrong guesses and an open recovery.
  func fullAccount(
    _ phone: TestPhone, trusting name: String, model: String = "iPhone 15 Pro", at backend: BackendProcess
  ) async throws -> ConsoleAccount {
    let account = try await enrolled(phone, model: model, at: backend)
    let first = try await signIn(phone, at: backend)
    let offer = try await post("/auth/mfa/enroll", [:], at: backend, as: phone.app, token: first)
    let secret = try #require(offer["secret"]?.text, "\(offer.text)")
    let codes = (0..<(offer["backup_codes"]?.count ?? 0)).compactMap { offer["backup_codes"]?[$0]?.text }
    try #require(codes.count > 2)
    let code = try await Self.code(of: secret)
    let confirmed = try await post(
      "/auth/mfa/verify-enrollment", ["code": .string(code)], at: backend, as: phone.app, token: first)
    try #require(confirmed.status == 200, "\(confirmed.text)")
    let further = try await post(
      "/auth/mfa/authenticators", ["name": "Tablet"], at: backend, as: phone.app, token: first)
    let seed = try #require(further["secret"]?.text, "\(further.text)")
    let added = try await post(
      "/auth/mfa/authenticators/confirm",
      ["id": further["id"] ?? .null, "code": .string(try await Self.code(of: seed))], at: backend, as: phone.app,
      token: first)
    try #require(added.status == 200, "\(added.text)")
    let second = try await signIn(phone, at: backend)
    let trusted = try await post(
      "/auth/mfa/verify-login",
      ["code": .string(codes[0]), "trust_device": true, "device_name": .string(name)], at: backend, as: phone.app,
      token: second, ["-H", "User-Agent: <script>alert(2)</script>"])
    try #require(trusted.status == 200, "\(trusted.text)")
    for _ in 0..<2 {
      _ = try await post(
        "/auth/mfa/verify-login", ["code": "00000000"], at: backend, as: phone.app,
        token: try await signIn(phone, at: backend))
    }
    let recovery = try await post(
      "/mfa/recovery", ["username": .string(phone.username), "code": .string(codes[1])], at: backend,
      as: .genuine())
    try #require(recovery.status == 200, "\(recovery.text)")
    let tokens = [first, second, trusted["token"]?.text, recovery["recoveryToken"]?.text].compactMap(\.self)
    return ConsoleAccount(
      phone: phone, id: account.id, secrets: account.secrets + [secret, code, seed] + codes + tokens)
  }

  /// The code of an authenticator with this secret now.
  private static func code(of secret: String) async throws -> String {
    let program = """
      import base64, hmac, struct, sys, time
      key = base64.b32decode(sys.argv[1] + "=" * (-len(sys.argv[1]) % 8))
      digest = hmac.new(key, struct.pack(">Q", int(time.time()) // 30), "sha1").digest()
      at = digest[-1] & 15
      print("%06d" % ((struct.unpack(">I", digest[at:at + 4])[0] & 0x7fffffff) % 1000000))
      """
    return try await ChildProcess.run(Places.tool("python3"), ["-c", program, secret]).output.joined()
  }
}
