import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import MFAService
import MFAStore
import TestSupport
import Testing

/// A phone with a session, on a backend with security keys enabled.
struct KeyScene: Sendable {
  let backend: TestBackend
  let phone: TestPhone
  let token: String
  let client: AppClient

  static func with(
    _ wire: Wire = .rest, _ database: TestDatabase = .sqlite, policy: Policy = .withSecurityKeys(),
    _ body: (KeyScene) async throws -> Void
  ) async throws {
    try await TestBackend.with(store: try await database.open(), policy: policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        try await body(KeyScene(backend: backend, phone: phone, token: token, client: client))
      }
    }
  }

  /// Registers a key, and returns it with its id in the list.
  func key(
    _ algorithm: CredentialPublicKey.Algorithm = .es256, token: String? = nil
  ) async throws -> (key: TestSecurityKey, id: JSONValue) {
    let key = try TestSecurityKey(algorithm)
    let entry = try await client.register(key, token: token ?? self.token)
    return (key, try #require(entry["id"], "\(entry)"))
  }

  func pending() async throws -> String { try await backend.pendingToken(phone) }

  func status(_ token: String? = nil) async throws -> JSONValue {
    try await client.call("mfa.status", token: token ?? self.token)
  }

  /// Requests an authentication challenge for the session of `token`. Returns it in base64url.
  func challenge(_ token: String) async throws -> String {
    try #require(await client.call("webauthn.authentication-options", [:], token: token)["challenge"]?.text)
  }

  func history() async throws -> [AuditEntry] {
    try await Administration(backend.context).history(
      of: Username(phone.username), before: nil, atMost: 1000, by: .command(name: "test"))
  }

  func notices() async throws -> [String] {
    let list = try await client.call("notices.list", [:], token: token)["notices"]
    return (0..<(list?.count ?? 0)).compactMap { list?[$0]?["kind"]?.text }
  }
}

@Suite("Security keys")
struct SecurityKeyTests {
  @Test(
    "A-223 a key of each algorithm is registered, listed, renamed, used as second factor and removed on each transport",
    arguments: Wire.allCases, TestDatabase.allCases)
  func life(_ wire: Wire, _ database: TestDatabase) async throws {
    try await KeyScene.with(wire, database) { scene async throws in
      for algorithm in CredentialPublicKey.Algorithm.allCases {
        var (key, id) = try await scene.key(algorithm)
        let entry = try await scene.client.call("webauthn.keys", token: scene.token)["keys"]?[0]
        #expect(entry?["id"] == id && entry?["name"] == "Blue" && entry?["lastUsedAt"] == .null)
        #expect(entry?["algorithm"] == .number(Double(algorithm.rawValue)) && entry?["transports"] == ["nfc", "usb"])
        #expect(entry?["credentialId"] == .string(Base64URL.encode(key.credentialID)))

        let status = try await scene.status()
        #expect(status["enabled"] == true && status["security_keys_count"] == 1 && status["methods"] == ["webauthn"])
        let pending = try await scene.pending()
        #expect(
          try await scene.client.call("devices.list", ["username": "testuser"], token: pending)["code"]
            == "mfa_required")
        key.signatureCount = 7
        let proved = try await scene.client.prove(key, token: pending)
        #expect(proved["message"] == "MFA verification successful" && proved["trust_token"] == nil)
        let full = try #require(proved["token"]?.text, "\(proved)")
        #expect(
          try await scene.client.call("devices.list", ["username": "testuser"], token: full)["devices"]?.count == 1)
        let claims = try JSONValue(Data(#require(Base64URL.decode(full.split(separator: ".")[1]))))
        #expect(claims["amr"] == ["pop", "mfa"] && claims["acr"] == "aal2")

        let renamed = try await scene.client.call("webauthn.rename-key", ["id": id, "name": "Green"], token: full)
        #expect(renamed["name"] == "Green" && renamed["lastUsedAt"] == "2026-01-01T00:00:00Z")
        let removed = try await scene.client.call("webauthn.remove-key", ["id": id], token: full)
        #expect(removed["message"] == "Security key removed")
        #expect(try await scene.client.call("webauthn.keys", token: full)["keys"] == [])
        #expect(try await scene.backend.signIn(scene.phone)["scope"] == "full")
      }
      #expect(try await scene.backend.trail.verify().fault == nil)
    }
  }

  @Test("A-224 the options have exactly the members of Web Authentication's JSON", arguments: Wire.allCases)
  func options(_ wire: Wire) async throws {
    try await KeyScene.with(wire) { scene async throws in
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      let userID = try #require(options["user"]?["id"]?.text)
      #expect(Base64URL.decode(userID)?.count == 16 && options["challenge"]?.text?.count == 43)
      #expect(
        options.with(["challenge": nil]) == [
          "rp": ["id": "example.org", "name": "Sallyport"],
          "user": ["id": .string(userID), "name": "testuser", "displayName": "testuser"], "challenge": nil,
          "pubKeyCredParams": [
            ["type": "public-key", "alg": -7], ["type": "public-key", "alg": -8], ["type": "public-key", "alg": -257],
          ],
          "timeout": 300_000, "excludeCredentials": [], "attestation": "none",
          "authenticatorSelection": [
            "residentKey": "discouraged", "requireResidentKey": false, "userVerification": "preferred",
          ],
        ])
      let (key, _) = try await scene.key()
      let descriptor: JSONValue = [
        "type": "public-key", "id": .string(Base64URL.encode(key.credentialID)), "transports": ["nfc", "usb"],
      ]
      let again = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      #expect(again["excludeCredentials"] == [descriptor] && again["user"]?["id"]?.text == userID)
      let request = try await scene.client.call("webauthn.authentication-options", [:], token: scene.token)
      #expect(
        request.with(["challenge": nil]) == [
          "challenge": nil, "timeout": 300_000, "rpId": "example.org", "allowCredentials": [descriptor],
          "userVerification": "preferred",
        ])
    }
  }

  @Test("A-224 a response with the user's handle, an empty handle or unknown members is accepted")
  func handles() async throws {
    try await KeyScene.with { scene async throws in
      var (key, _) = try await scene.key()
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      key.userHandle = try #require(Base64URL.decode(options["user"]?["id"]?.text ?? ""))
      #expect(try await scene.client.prove(key, token: scene.token, ["new": ["member": 1]])["token"] != nil)
      key.userHandle = []
      #expect(try await scene.client.prove(key, token: scene.token)["token"] != nil)
      key.userHandle = [1, 2, 3]
      #expect(try await scene.client.prove(key, token: scene.token)["code"] == "authentication_failed")
    }
  }

  @Test(
    "W73 a key is registered and used with its values in any form of base64, and not with two alphabets in one",
    arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) async throws {
    try await KeyScene.with { scene async throws in
      let key = try TestSecurityKey()
      func text(_ bytes: [UInt8]) -> JSONValue { .string(form.text(Base64.encode(bytes))) }
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      let made = try key.register(options["challenge"]?.text ?? "")
      let entry = try await scene.client.call(
        "webauthn.register",
        made.json.with([
          "name": "Blue", "id": text(made.credentialID),
          "response": [
            "clientDataJSON": text(made.clientDataJSON), "attestationObject": text(made.attestationObject),
          ],
        ]), token: scene.token)
      #expect(entry["credentialId"] == .string(Base64URL.encode(key.credentialID)), "\(entry)")

      let pending = try await scene.pending()
      let used = try await key.authenticate(scene.challenge(pending))
      let members: [String: JSONValue] = [
        "clientDataJSON": text(used.clientDataJSON), "authenticatorData": text(used.authenticatorData),
        "signature": text(used.signature),
      ]
      let mixed = "-_+/" + Base64.encode(used.authenticatorData).dropFirst(4)
      let refused = try await scene.client.call(
        "webauthn.verify-login",
        used.json.with([
          "response": JSONValue.object(members).with(["authenticatorData": .string(mixed)])
        ]), token: pending)
      #expect(refused["code"] == "invalid_request", "\(refused)")
      #expect(refused["error"]?.text?.contains("response.authenticatorData must be base64url") == true, "\(refused)")
      let proved = try await scene.client.call(
        "webauthn.verify-login",
        used.json.with(["rawId": text(used.credentialID), "response": .object(members)]), token: pending)
      #expect(proved["token"] != nil, "\(proved)")
    }
  }

  static let malformedResponses: [([String: JSONValue], String)] = [
    (["type": "password"], "type must be public-key"),
    (["id": "AA="], "id must be base64url"), (["id": ""], "id must be base64url"),
    (["rawId": "AQID"], "rawId must be the same as id"), (["response": ["clientDataJSON": "e30"]], "is required"),
    (
      [
        "response": [
          "clientDataJSON": "e30", "attestationObject": "+-AA", "authenticatorData": "+-AA", "signature": "AA",
        ]
      ],
      "must be base64url"
    ),
  ]

  @Test("A-224 a malformed response is refused with the reason", arguments: malformedResponses)
  func malformed(_ change: [String: JSONValue], _ text: String) async throws {
    try await KeyScene.with { scene async throws in
      let (key, _) = try await scene.key()
      for (operation, body) in [
        ("webauthn.register", try key.register("AAAA").json),
        ("webauthn.verify-login", try key.authenticate("AAAA").json),
      ] {
        let answer = try await scene.client.call(operation, body.with(change), token: scene.token)
        #expect(answer["code"] == "invalid_request" && answer["error"]?.text?.contains(text) == true, "\(answer)")
      }
    }
  }

  @Test("A-224 a refused registration gives the reason and consumes its challenge")
  func refusedRegistration() async throws {
    try await KeyScene.with { scene async throws in
      var key = try TestSecurityKey()
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      let challenge = options["challenge"]?.text ?? ""
      key.origin = "https://evil.example"
      let refused = try await scene.client.call("webauthn.register", key.register(challenge).json, token: scene.token)
      #expect(refused["code"] == "invalid_request" && refused["error"]?.text?.contains("origin") == true)
      key.origin = "https://example.org"
      let again = try await scene.client.call("webauthn.register", key.register(challenge).json, token: scene.token)
      #expect(again["code"] == "invalid_request" && again["error"]?.text?.contains("has been used") == true)
      let before = try await scene.client.call("webauthn.register", key.register("AAAA").json, token: scene.token)
      #expect(before["code"] == "invalid_request")
      #expect(try await scene.client.call("webauthn.keys", token: scene.token)["keys"] == [])
      let reasons = try await scene.history().filter { $0.event == "security_key.refused" }.map(\.detail)
      #expect(reasons.last == "ceremony=registration reason=origin" && reasons.count == 3)
    }
  }

  @Test("A-224 a challenge is valid only for its session and ceremony, until it expires or a newer one is issued")
  func challenges() async throws {
    try await KeyScene.with { scene async throws in
      let (key, _) = try await scene.key()
      let (first, second) = (try await scene.pending(), try await scene.pending())
      func verify(_ challenge: String, _ token: String) async throws -> JSONValue? {
        try await scene.client.call("webauthn.verify-login", key.authenticate(challenge).json, token: token)["code"]
      }
      // The challenge of another session. Both sessions have a challenge.
      let foreign = try await scene.challenge(first)
      _ = try await scene.challenge(second)
      #expect(try await verify(foreign, second) == "authentication_failed")
      // The challenge of a registration.
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      #expect(try await verify(options["challenge"]?.text ?? "", scene.token) == "authentication_failed")
      // An older challenge. The attempt consumes the newer one.
      let older = try await scene.challenge(first)
      let newer = try await scene.challenge(first)
      #expect(try await verify(older, first) == "authentication_failed")
      #expect(try await verify(newer, first) == "authentication_failed")
      // An expired challenge.
      let late = try await scene.challenge(first)
      scene.backend.clock.advance(by: .seconds(300))
      #expect(try await verify(late, first) == "authentication_failed")
      let reasons = try await scene.history().filter { $0.event == "security_key.refused" }.map {
        $0.detail.split(separator: "=").last.map(String.init)
      }
      #expect(
        reasons == [
          "challenge_expired", "challenge_used", "challenge_wrong", "challenge_unknown", "challenge_wrong",
        ])
      // Five failures locked the factor for 15 minutes.
      scene.backend.clock.advance(by: .seconds(900))
      let fresh = try await scene.pending()
      let last = try await scene.challenge(fresh)
      scene.backend.clock.advance(by: .seconds(299))
      #expect(try await verify(last, fresh) == nil)
    }
  }

  @Test("A-224 five failures with a key lock the second factor for keys and codes")
  func limiter() async throws {
    try await TestBackend.with(policy: .withSecurityKeys()) { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      try await AppClient.with(backend, .rest, as: phone.app) { client in
        let key = try TestSecurityKey()
        #expect(try await client.register(key, token: token)["id"] != nil)
        var wrong = key
        wrong.partyID = "evil.example"
        let pending = try await backend.pendingToken(phone)
        for _ in 1...5 {
          #expect(try await client.prove(wrong, token: pending)["code"] == "authentication_failed")
        }
        #expect(try await client.prove(key, token: pending)["code"] == "rate_limited")
        #expect(try await backend.verifyLogin(authenticator.code(), phone, token: pending).status == 429)
        backend.clock.advance(by: .seconds(900))
        #expect(try await client.prove(key, token: backend.pendingToken(phone))["token"] != nil)
      }
    }
  }

  @Test("a key whose eligibility for backup has changed is named, is not counted, and can be registered again")
  func changedEligibility() async throws {
    try await KeyScene.with { scene async throws in
      let (key, id) = try await scene.key()
      var changed = key
      changed.flags.insert(.backupEligible)
      let pending = try await scene.pending()
      // More than the five failures that lock the factor.
      for _ in 1...7 {
        let refused = try await scene.client.prove(changed, token: pending)
        #expect(refused["code"] == "authentication_failed", "\(refused)")
        #expect(refused["error"]?.text?.contains("register it again") == true, "\(refused)")
      }
      // The signature of another key says nothing of it, and counts.
      var other = try TestSecurityKey()
      other.flags.insert(.backupEligible)
      let challenge = try await scene.challenge(pending)
      let forged = try other.authenticate(challenge).json.with(["id": nil, "rawId": nil])
        .with([
          "id": .string(Base64URL.encode(key.credentialID)), "rawId": .string(Base64URL.encode(key.credentialID)),
        ])
      let wrong = try await scene.client.call("webauthn.verify-login", forged, token: pending)
      #expect(wrong["error"] == "Authentication failed", "\(wrong)")
      let events = try await scene.history().map(\.event)
      #expect(events.filter { $0 == "security_key.changed" }.count == 7)
      #expect(events.filter { $0 == "security_key.refused" }.count == 1)
      #expect(try await scene.client.prove(key, token: pending)["token"] != nil)
      #expect(try await scene.client.call("webauthn.remove-key", ["id": id], token: scene.token)["message"] != nil)
      #expect(try await scene.client.register(changed, token: scene.token)["id"] != nil)
      #expect(try await scene.client.prove(changed, token: scene.pending())["token"] != nil)
    }
  }

  @Test("A-224 of 50 simultaneous uses of one signature, one is accepted", arguments: TestDatabase.allCases)
  func race(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      let (key, _) = try await scene.key()
      let pending = try await scene.pending()
      let body = try key.authenticate(await scene.challenge(pending)).json
      let accepted = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask {
            try await scene.client.call("webauthn.verify-login", body, token: pending)["token"] != nil ? 1 : 0
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(accepted == 1)
    }
  }

  @Test("A-224 of 20 simultaneous registrations with one challenge, one is accepted", arguments: TestDatabase.allCases)
  func registrationRace(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      let challenge = options["challenge"]?.text ?? ""
      let accepted = try await withThrowingTaskGroup { group in
        for _ in 1...20 {
          group.addTask {
            let body = try TestSecurityKey().register(challenge).json
            return try await scene.client.call("webauthn.register", body, token: scene.token)["id"] != nil ? 1 : 0
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(accepted == 1)
      #expect(try await scene.client.call("webauthn.keys", token: scene.token)["keys"]?.count == 1)
    }
  }

  @Test("A-224 a credential belongs to one account only", arguments: TestDatabase.allCases)
  func unique(_ database: TestDatabase) async throws {
    try await KeyScene.with(.rest, database) { scene async throws in
      let (key, _) = try await scene.key()
      #expect(try await scene.client.register(key, token: scene.token)["code"] == "key_exists")
      let other = TestPhone(username: "other")
      let token = try await scene.backend.token(other)
      try await AppClient.with(scene.backend, .rest, as: other.app) { client in
        #expect(try await client.register(key, token: token)["code"] == "key_exists")
        let own = try TestSecurityKey()
        #expect(try await client.register(own, token: token)["id"] != nil)
        // Another user's key is refused as second factor, and this user cannot rename or remove it.
        let pending = try await scene.backend.pendingToken(other)
        #expect(try await client.prove(key, token: pending)["code"] == "authentication_failed")
        let id = try await scene.client.call("webauthn.keys", token: scene.token)["keys"]?[0]?["id"] ?? nil
        #expect(try await client.call("webauthn.remove-key", ["id": id], token: token)["code"] == "not_found")
        #expect(
          try await client.call("webauthn.rename-key", ["id": id, "name": "x"], token: token)["code"] == "not_found")
      }
    }
  }

  @Test("A-224 an id of 1023 bytes is accepted, and an eleventh key is refused")
  func caps() async throws {
    try await KeyScene.with { scene async throws in
      let long = try TestSecurityKey(idLength: 1023)
      #expect(try await scene.client.register(long, token: scene.token)["id"] != nil)
      #expect(try await scene.client.prove(long, token: scene.token)["token"] != nil)
      for _ in 2...10 { _ = try await scene.key() }
      let options = try await scene.client.call("webauthn.registration-options", [:], token: scene.token)
      #expect(options["code"] == "too_many_keys" && options["error"] == "An account has at most 10 security keys")
    }
  }

  @Test("A-224 a signature whose count does not increase is refused, recorded and reported to the user's devices")
  func clone() async throws {
    try await KeyScene.with { scene async throws in
      var (key, id) = try await scene.key()
      let counts: [(UInt32, Bool)] = [(0, true), (5, true), (5, false), (4, false), (0, false), (6, true)]
      for (count, isAccepted) in counts {
        key.signatureCount = count
        let answer = try await scene.client.prove(key, token: scene.token)
        #expect((answer["token"] != nil) == isAccepted, "\(count)")
        if !isAccepted { #expect(answer["code"] == "authentication_failed") }
      }
      let suspicions = try await scene.history().filter { $0.event == "security_key.clone_suspected" }
      #expect(
        suspicions.map(\.detail)
          == Array(
            repeating: "ceremony=authentication key=\(id.text ?? "") reason=signature_count", count: 3))
      #expect(try await scene.notices().filter { $0 == "securityKeySuspected" }.count == 3)
    }
  }

  @Test("A-224 with a required PIN, the options request it and a touch alone is refused")
  func userVerification() async throws {
    try await KeyScene.with(policy: .withSecurityKeys(.required)) { scene async throws in
      var (key, _) = try await scene.key()
      let request = try await scene.client.call("webauthn.authentication-options", [:], token: scene.token)
      #expect(request["userVerification"] == "required")
      key.flags = .userPresent
      #expect(try await scene.client.prove(key, token: scene.token)["code"] == "authentication_failed")
      let other = try TestSecurityKey()
      var touched = other
      touched.flags = .userPresent
      #expect(try await scene.client.register(touched, token: scene.token)["code"] == "invalid_request")
      #expect(try await scene.client.register(other, token: scene.token)["id"] != nil)
    }
    try await KeyScene.with(policy: .withSecurityKeys(.discouraged)) { scene async throws in
      var key = try TestSecurityKey()
      key.flags = .userPresent
      #expect(try await scene.client.register(key, token: scene.token)["id"] != nil)
      #expect(try await scene.client.prove(key, token: scene.token)["token"] != nil)
    }
  }
}
