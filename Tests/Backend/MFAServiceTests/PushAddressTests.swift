import ByteCoding
import Crypto
import Foundation
import MFADomain
import MFAFixtures
@testable import MFAStore
import Testing

@Suite("Addresses at push services")
struct PushAddressTests {
  private static let token = PushNotification.deviceToken
  private static let otherToken = String(repeating: "ff00", count: 16)

  private static var policy: Policy {
    var policy = Policy()
    policy.pushServices = [.apns, .fcm]
    return policy
  }

  private func register(
    _ backend: TestBackend, _ phone: TestPhone, _ accessToken: String, _ token: String = Self.token
  ) async throws -> Answer {
    try await backend.post("/auth/push/address", ["token": .string(token)], as: phone.app, token: accessToken)
  }

  /// The addresses of an account, each as the device and the token.
  private func addresses(_ backend: TestBackend, _ username: String = "testuser") async throws -> [String: String] {
    let vault = backend.context.vault
    return try await backend.context.store.read { records in
      guard let user = try records.user(named: Username(username).key) else { return [:] }
      let found = try records.pushAddresses(of: user.id)
      return Dictionary(
        uniqueKeysWithValues: try found.map {
          ($0.deviceID.text, try vault.openText($0.token, for: "push token:\($0.deviceID.text)"))
        })
    }
  }

  private func events(_ backend: TestBackend, _ event: AuditEvent) async throws -> [String] {
    try await backend.context.store.read { records in
      try records.auditEntries(after: 0, atMost: 1000).map(\.entry).filter { $0.event == event.rawValue }.map {
        "\($0.account ?? ""): \($0.detail)"
      }
    }
  }

  /// Two devices of a user with a second factor: one with a full session, and another one that waits for approval.
  private struct Pair {
    let approving: TestPhone
    let approvingToken: String
    let waiting: TestPhone
    let waitingToken: String
  }

  private func pair(_ backend: TestBackend, waiting app: AppInstance = .genuine()) async throws -> Pair {
    let approving = TestPhone()
    let (token, _) = try await backend.setUp(approving)
    let waiting = TestPhone(app: app)
    _ = try await backend.link(waiting, to: approving, token: token)
    return Pair(
      approving: approving, approvingToken: token, waiting: waiting,
      waitingToken: try await backend.pendingToken(waiting))
  }

  // MARK: Registration

  @Test(
    "a device has one address, the last one wins, and it can be removed",
    arguments: Wire.allCases, TestDatabase.allCases)
  func register(_ wire: Wire, _ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open(), policy: Self.policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        for text in [Self.token, Self.otherToken, Self.otherToken.uppercased()] {
          let answer = try await client.call("push.register", ["token": .string(text)], token: token)
          #expect(answer["active"] == true)
          #expect(try await addresses(backend) == [phone.deviceID: text.lowercased()])
        }
        for _ in 0..<2 {
          #expect(try await client.call("push.unregister", [:], token: token)["active"] == false)
          #expect(try await addresses(backend).isEmpty)
        }
      }
      let detail = "testuser: device=\(phone.deviceID) service=apns"
      #expect(try await events(backend, .pushAddressRegistered) == [detail, detail])
      #expect(try await events(backend, .pushAddressRemoved) == [detail + " reason=unregistered"])
    }
  }

  @Test("the platform of the attested key selects the service and the form of the token")
  func platforms() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let apple = TestPhone(username: "apple")
      let android = TestPhone(username: "android", app: .genuine(method: "android-key"))
      let (appleToken, androidToken) = (try await backend.token(apple), try await backend.token(android))
      #expect(try await register(backend, android, androidToken, PushNotification.registrationToken).status == 200)
      #expect(try await register(backend, apple, appleToken, PushNotification.registrationToken).status == 400)
      for bad in ["", "ab", String(repeating: "a", count: 63), String(repeating: "ab", count: 101), Self.token + "0"] {
        let answer = try await register(backend, apple, appleToken, bad)
        #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(bad)")
      }
      let tooLong = String(repeating: "a", count: 1025)
      for bad in ["short", tooLong, Self.token + " ", Self.token + "\u{E4}", Self.token + "/../", Self.token + "\n"] {
        #expect(try await register(backend, android, androidToken, bad).status == 400, "\(bad)")
      }
      let services = try await backend.context.store.read { records in
        try ["apple", "android"].map { name -> [PushAddress] in
          try records.pushAddresses(of: records.user(named: Username(name).key)?.id ?? UUID())
        }
      }
      #expect(services[0].isEmpty && services[1].map(\.service) == [.fcm])
      #expect(services[1][0].isProduction && services[1][0].app == "AAABBBCCC1.com.example.app")
    }
  }

  @Test("a debug build, a session without its second factor and a caller without a session register nothing")
  func refused() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let debug = TestPhone(username: "debug", app: .debugBuild)
      let token = try await backend.token(debug)
      #expect(try await register(backend, debug, token)["code"] == "forbidden")
      let pair = try await pair(backend)
      #expect(try await register(backend, pair.waiting, pair.waitingToken)["code"] == "mfa_required")
      #expect(try await register(backend, pair.waiting, pair.approvingToken)["code"] == "device_mismatch")
      let none = try await backend.post("/auth/push/address", ["token": .string(Self.token)], as: pair.waiting.app)
      #expect(none["code"] == "session_required")
      #expect(try await addresses(backend).isEmpty)
    }
  }

  @Test("a backend that does not send by the service keeps no address, and says so")
  func off() async throws {
    var policy = Policy()
    policy.pushServices = [.fcm]
    try await TestBackend.with(policy: policy) { backend in
      let phone = TestPhone()
      let answer = try await register(backend, phone, try await backend.token(phone))
      #expect(answer.status == 200 && answer["active"] == false)
      #expect(try await addresses(backend).isEmpty)
      #expect(try await events(backend, .pushAddressRemoved).isEmpty)
    }
  }

  @Test("an address that is removed because its service was turned off has an entry in the history")
  func turnedOff() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let keys = KeyEncryptionKeys.ephemeral(.system)
    let (phone, clock) = (TestPhone(), ManualClock())
    let gate = try TestGate(clock: clock.wall)
    let token = try await TestBackend.with(store: store, policy: Self.policy, gate: gate, clock: clock, keys: keys) {
      backend in
      let token = try await backend.token(phone)
      #expect(try await register(backend, phone, token)["active"] == true)
      return token
    }
    try await TestBackend.with(store: store, gate: gate, clock: clock, keys: keys) { backend in
      for _ in 0..<2 {
        let answer = try await register(backend, phone, token)
        #expect(answer["active"] == false)
      }
      #expect(try await addresses(backend).isEmpty)
      #expect(
        try await events(backend, .pushAddressRemoved)
          == ["testuser: device=\(phone.deviceID) service=apns reason=off"])
    }
  }

  @Test(
    "an app of Apple's whose name has no bundle id is told that it gets none", arguments: ["nodot", ".x", "T.\u{FC}"])
  func noBundleID(name: String) async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      var app = AppInstance.genuine()
      app.name = name
      let phone = TestPhone(app: app)
      let answer = try await register(backend, phone, try await backend.token(phone))
      #expect(answer.status == 200 && answer["active"] == false)
      #expect(try await addresses(backend).isEmpty)
    }
  }

  @Test("a token moves to the account that reports it last", arguments: TestDatabase.allCases)
  func moved(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open(), policy: Self.policy) { backend in
      let (former, next) = (TestPhone(username: "former"), TestPhone(username: "next"))
      _ = try await register(backend, former, try await backend.token(former))
      #expect(try await register(backend, next, try await backend.token(next)).status == 200)
      #expect(try await addresses(backend, "former").isEmpty)
      #expect(try await addresses(backend, "next") == [next.deviceID: Self.token])
      #expect(
        try await events(backend, .pushAddressRemoved)
          == ["former: device=\(former.deviceID) service=apns reason=moved"])
    }
  }

  @Test("the table shows neither the token nor its hash in the clear")
  func sealed() async throws {
    let store = try await TestDatabase.sqlite.open()
    try await TestBackend.with(store: store, policy: Self.policy) { backend in
      let phone = TestPhone()
      _ = try await register(backend, phone, try await backend.token(phone))
      let row = try await store.read { records -> [SQLValue] in
        let records = try #require(records as? SQLRecords)
        return try records.sql.rows("SELECT * FROM push_addresses", [])[0].values
      }
      let hash = Array(SHA256.hash(data: Data(Self.token.utf8)))
      for case .blob(let bytes) in row {
        #expect(bytes != hash && bytes != Hex.decode(Self.token) && bytes != Array(Self.token.utf8))
      }
      #expect(!row.contains(.text(Self.token)))
    }
  }

  // MARK: The end of an address

  @Test(
    "an address ends with its device, its session and its account",
    arguments: ["sign-out", "removal", "lock", "reset", "copied refresh token"])
  func ends(_ way: String) async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let pair = try await pair(backend)
      let phone = pair.approving
      _ = try await register(backend, phone, pair.approvingToken)
      #expect(try await addresses(backend).count == 1)
      let administration = Administration(backend.context)
      let (name, actor) = (try Username("testuser"), Administration.Actor.command(name: "test"))
      switch way {
      case "sign-out": _ = try await backend.post("/auth/token/revoke", [:], as: phone.app, token: pair.approvingToken)
      case "removal": try await administration.removeDevice(DeviceID(phone.deviceID), of: name, by: actor)
      case "lock": try await administration.lock(name, by: actor)
      case "reset": _ = try await administration.resetFactors(name, by: actor)
      default:
        let other = TestPhone(username: "other")
        try await backend.enrol(other)
        let refresh = try await backend.signIn(other)["refreshToken"] ?? nil
        _ = try await register(
          backend, other, try await backend.signIn(other)["token"]?.text ?? "", Self.otherToken)
        for _ in 0..<2 {
          _ = try await backend.post("/auth/token/refresh", ["refreshToken": refresh], as: other.app)
          backend.clock.advance(by: .seconds(11))
        }
        #expect(try await addresses(backend, "other").isEmpty)
        return
      }
      #expect(try await addresses(backend).isEmpty)
    }
  }

  @Test("an address stays if the session that ends began after its registration, and the session before goes on")
  func otherSession() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      _ = try await register(backend, phone, token)
      backend.clock.advance(by: .seconds(1))
      // A sign-in that confirms a new number, for example.
      let passing = try await backend.signIn(phone)["token"]?.text
      #expect(try await backend.post("/auth/token/revoke", [:], as: phone.app, token: passing).status == 200)
      #expect(try await addresses(backend) == [phone.deviceID: Self.token])
      // The session that may have registered it.
      #expect(try await backend.post("/auth/token/revoke", [:], as: phone.app, token: token).status == 200)
      #expect(try await addresses(backend).isEmpty)
    }
  }

  @Test("an address that the service does not know is removed, unless it was registered again since")
  func forgotten() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      _ = try await register(backend, phone, token)
      let store = backend.context.store
      let first = try #require(
        try await store.read { try $0.pushAddress(of: DeviceID(phone.deviceID)) })
      let found = backend.clock.now
      backend.clock.advance(by: .seconds(10))
      _ = try await register(backend, phone, token)
      #expect(try await !PushAddresses.forget(first, unknownSince: found, in: store, at: backend.clock.now))
      #expect(try await addresses(backend).count == 1)
      _ = try await register(backend, phone, token, Self.otherToken)
      #expect(
        try await !PushAddresses.forget(first, unknownSince: backend.clock.now, in: store, at: backend.clock.now))
      _ = try await register(backend, phone, token)
      #expect(
        try await PushAddresses.forget(first, unknownSince: backend.clock.now, in: store, at: backend.clock.now))
      #expect(try await addresses(backend).isEmpty)
      #expect(try await events(backend, .pushAddressRemoved).last?.hasSuffix("reason=unknown") == true)
    }
  }

  // MARK: Sign-ins

  @Test("a sign-in notifies the other device, also while its socket is open, and the device that asks hears nothing")
  func signIn() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let pair = try await pair(backend)
      _ = try await register(backend, pair.approving, pair.approvingToken)
      try await TestSocket.with(backend, as: pair.approving.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(pair.approvingToken)])
        let push = try await backend.post(
          "/auth/push/start", [:], as: pair.waiting.app, token: pair.waitingToken)
        #expect(push.status == 200)
        let sent = backend.pushes.notifications
        #expect(
          sent.count == 1 && sent[0].token == Self.token && sent[0].address.deviceID.text == pair.approving.deviceID)
        let id = try #require(UUID(uuidString: push["pushId"]?.text ?? ""))
        #expect(sent[0].content == .signIn(push: id))
        #expect(sent[0].expiresAt == backend.clock.now.advanced(by: .seconds(120)))
        let challenge = try await socket.next { $0["method"] == "push.challenge" }
        #expect(challenge["params"]?["pushId"] == push["pushId"])
      }
      // The limit of pushes is the limit of notifications.
      for status in [200, 200, 429, 429] {
        let push = try await backend.post(
          "/auth/push/start", [:], as: pair.waiting.app, token: pair.waitingToken)
        #expect(push.status == status)
      }
      #expect(backend.pushes.notifications.count == 3)
    }
  }

  @Test(
    "a device that could not answer is not notified",
    arguments: ["its own", "no session", "no key", "session ended", "not registered"])
  func silent(_ reason: String) async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let pair = try await pair(backend)
      _ = try await register(backend, pair.approving, pair.approvingToken)
      var (asking, token) = (pair.waiting, pair.waitingToken)
      switch reason {
      case "its own":
        (asking, token) = (pair.approving, try await backend.pendingToken(pair.approving))
      case "no session":
        // The session of the device ends by its age, which no operation notices.
        backend.clock.advance(by: .seconds(30 * 86400))
        token = try await backend.pendingToken(pair.waiting)
      case "no key":
        let downgraded = try await backend.post(
          "/mfa/downgrade", pair.approving.naming, as: pair.approving.app, token: pair.approvingToken)
        #expect(downgraded.status == 200)
        token = try await backend.pendingToken(pair.waiting)
      case "session ended":
        _ = try await backend.post("/auth/token/revoke", [:], as: pair.approving.app, token: pair.approvingToken)
      case "not registered":
        _ = try await backend.send(
          "DELETE", "/api/v1/auth/push/address", as: pair.approving.app, token: pair.approvingToken)
      default: break
      }
      let started = try await backend.post("/auth/push/start", [:], as: asking.app, token: token)
      #expect(started.status == 200)
      #expect(backend.pushes.notifications.isEmpty)
    }
  }

  @Test("sealing all values again keeps an address, and a backend that no longer sends by its service does not use it")
  func resealed() async throws {
    let (keys, store) = (KeyEncryptionKeys.ephemeral(.system), try await TestDatabase.sqlite.open())
    let clock = ManualClock()
    let gate = try TestGate(clock: clock.wall)
    let devices = try await TestBackend.with(store: store, policy: Self.policy, gate: gate, clock: clock, keys: keys) {
      let pair = try await pair($0)
      #expect(try await register($0, pair.approving, pair.approvingToken).status == 200)
      return pair
    }
    _ = try await Resealing(store, keys, clock: clock.wall).run()
    for policy in [Self.policy, Policy()] {
      try await TestBackend.with(store: store, policy: policy, gate: gate, clock: clock, keys: keys) { backend in
        let token = try await backend.pendingToken(devices.waiting)
        let push = try await backend.post("/auth/push/start", [:], as: devices.waiting.app, token: token)
        #expect(push.status == 200)
        #expect(
          backend.pushes.notifications.map(\.token) == (policy.pushServices.isEmpty ? [] : [Self.token]))
      }
    }
  }

  // MARK: Notices

  @Test("a notice about the security of an account is a notification if the operator says so, ten in an hour")
  func notices() async throws {
    for isOn in [false, true] {
      var policy = Self.policy
      policy.pushesNotices = isOn
      try await TestBackend.with(policy: policy) { backend in
        let pair = try await pair(backend)
        _ = try await register(backend, pair.approving, pair.approvingToken)
        let code = try await backend.post("/mfa/link", [:], as: pair.approving.app, token: pair.approvingToken)
        var body = try #require(TestPhone().enrolment().members)
        body["linkCode"] = code["linkCode"] ?? nil
        #expect(try await backend.post("/mfa/enroll", .object(body), as: .genuine()).status == 200)
        #expect(backend.pushes.notifications.count == (isOn ? 1 : 0))
        guard isOn else { return }
        guard case .notice(let sequence) = backend.pushes.notifications[0].content else {
          Issue.record("not a notice")
          return
        }
        let listed = try await backend.get(
          "/auth/notices?after=\(sequence - 1)", as: pair.approving.app, token: pair.approvingToken)
        #expect(listed["notices"]?[0]?["kind"] == "deviceEnrolled")
        var phone = TestPhone()
        for number in 1...20 {
          phone = TestPhone()
          _ = try await backend.link(phone, to: pair.approving, token: pair.approvingToken)
          guard number < 20 else { break }
          _ = try await Administration(backend.context).removeDevice(
            DeviceID(phone.deviceID), of: Username("testuser"), by: .command(name: "test"))
        }
        // Three were before the registration.
        #expect(backend.pushes.notifications.count == 7)
        let count = backend.pushes.notifications.count
        // Those of a clock that ran ahead do not count.
        backend.clock.advance(by: .seconds(-3601))
        _ = try await Administration(backend.context).removeDevice(
          DeviceID(phone.deviceID), of: Username("testuser"), by: .command(name: "test"))
        #expect(backend.pushes.notifications.count == count + 1)
        backend.clock.advance(by: .seconds(7202))
        _ = try await Administration(backend.context).removeDevice(
          DeviceID(pair.waiting.deviceID), of: Username("testuser"), by: .command(name: "test"))
        #expect(backend.pushes.notifications.count == count + 2)
      }
    }
  }

  @Test(
    "a device is notified of a change that ends or holds its session",
    arguments: [Notice.Kind.mfaEnabled, .locked, .mfaDisabled])
  func endedByChange(_ kind: Notice.Kind) async throws {
    var policy = Self.policy
    policy.pushesNotices = true
    try await TestBackend.with(policy: policy) { backend in
      let owner = TestPhone()
      let token = try await backend.token(owner)
      #expect(try await register(backend, owner, token).status == 200)
      let administration = Administration(backend.context)
      let (name, actor) = (try Username("testuser"), Administration.Actor.command(name: "test"))
      var before = 0
      switch kind {
      case .locked: try await administration.lock(name, by: actor)
      case .mfaDisabled: _ = try await administration.resetFactors(name, by: actor)
      case .mfaEnabled:
        let other = TestPhone()
        _ = try await backend.link(other, to: owner, token: token)
        let otherToken = try await backend.signIn(other)["token"]?.text ?? ""
        before = backend.pushes.notifications.count
        let authenticator = try await backend.offerAuthenticator(other, token: otherToken)
        let code: JSONValue = ["code": .string(authenticator.code())]
        let confirmed = try await backend.post(
          "/auth/mfa/verify-enrollment", code, as: other.app, token: otherToken)
        #expect(confirmed.status == 200)
      default: Issue.record("no change has this notice")
      }
      let sent = backend.pushes.notifications.dropFirst(before)
      #expect(sent.map(\.address.deviceID.text) == [owner.deviceID] && sent.first?.token == Self.token)
      guard case .notice(let sequence) = sent.first?.content else {
        Issue.record("not a notice")
        return
      }
      // The notice with this number, or one before it in the same change.
      let kinds = try await backend.context.store.read { records in
        let user = try #require(try records.user(named: "testuser"))
        return try records.notices(of: user.id, after: 0, atMost: 100).filter { $0.sequence <= sequence }.map(\.kind)
      }
      #expect(kinds.contains(kind))
      let state = try await backend.get("/devices/testuser", as: owner.app, token: token)
      #expect(state.status == (kind == .mfaEnabled ? 403 : 401))
    }
  }

  @Test("a refused request sends no notification")
  func rolledBack() async throws {
    try await TestBackend.with(policy: Self.policy) { backend in
      let pair = try await pair(backend)
      _ = try await register(backend, pair.approving, pair.approvingToken)
      for _ in 0..<2 {
        let refused = try await backend.post("/auth/push/start", [:], as: pair.approving.app, token: pair.waitingToken)
        #expect(refused.status == 403)
      }
      #expect(backend.pushes.notifications.isEmpty)
    }
  }
}
