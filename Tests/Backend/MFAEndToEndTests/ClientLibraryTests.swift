import AttestClient
import ByteCoding
import Crypto
import Foundation
import GateProcesses
import Locking
import MFAClient
import MFAFixtures
import MFAViewModels
import MFAWire
import SimulatedDevice
import TestSupport
import Testing
import TransportEngine

@testable import attest
@testable import SimulatedPhone

/// An app that embeds the client library, on a simulated phone.
private struct TestApp: Sendable {
  let phone: SimulatedPhone
  let network: any MFABackend
  let username = "ada"
  let deviceID = "phone-1"
  let tag = KeyTag.biometric(of: "com.example.app")

  /// How requests reach the server.
  enum Way: CaseIterable { case rest, socket }

  init(
    _ household: BackendBehindGate, _ settings: PhoneSettings = .faceID, by way: Way = .rest,
    phone: SimulatedPhone? = nil, capture: RequestCapture? = nil
  ) throws {
    self.phone = phone ?? SimulatedPhone(settings)
    let authority = try household.gate.folder.load()
    let tls = try ClientTLS(authorityFile: household.gate.folder.tlsAuthorityPath)
    let keys = SimulatedKeyService(
      authority: authority, app: SimulatedApp(appID: authority.appID, claims: AppClaims()), keys: MemoryKeyStore())
    let base = try #require(URL(string: household.gate.baseURL + "/api/v1"))
    let transport = EngineTransport(engine: try ClientEngine(), tls: tls)
    let session = try AttestSession(
      gate: base.deletingLastPathComponent().deletingLastPathComponent(), keys: keys,
      store: FileKeyIDStore(path: household.data + "-key-\(UUID().uuidString)"),
      http: capture.map { CapturingTransport(transport: transport, capture: $0) } ?? transport)
    let socket = try #require(URL(string: household.socketURL + "api/v1/socket"))
    network =
      switch way {
      case .rest: NetworkService(session: session, base: base)
      case .socket: SocketService(session: session, url: socket, transport: transport)
      }
  }

  /// Makes a key, tests it, and enrols it.
  func enroll(_ protection: KeyProtection) async throws -> EnrollResponse {
    let pair = try await phone.createKey(tag, protection: protection)
    _ = try await phone.sign([UInt8](repeating: 0, count: 32), with: tag, reason: "Test the key")
    return try await network.call(
      MFAOperations.enroll,
      EnrollRequest(
        username: username, phoneNumber: "+1234567890", publicKey: Base64.encode(pair.publicKey),
        method: MFAMethod.secureEnclave.rawValue, deviceId: deviceID, deviceModel: phone.settings.model,
        authMethod: protection.authMethod.rawValue))
  }

  /// Asks for a challenge, and returns the provider's answer to it.
  func identity(from provider: TestProvider) async throws -> IdentityTokenRequest {
    let challenge = try await network.call(MFAOperations.identityChallenge, EmptyRequest())
    #expect(challenge.expiresIn == 600)
    let token = try await provider.token(for: challenge.challenge, at: WallClock.system.now())
    return IdentityTokenRequest(challengeId: challenge.challengeId, idToken: token)
  }

  /// Signs in with the key.
  func signIn() async throws -> TokenResponse {
    let challenge = try await network.call(
      MFAOperations.initiateSignIn, DeviceRequest(username: username, deviceId: deviceID))
    let nonce = try #require(Base64.decode(challenge.challenge))
    let signature = try await phone.sign(nonce, with: tag, reason: "Sign in")
    return try await network.call(
      MFAOperations.verifySignature,
      VerifySignatureRequest(
        username: username, deviceId: deviceID, challengeId: challenge.challengeId,
        signature: Base64.encode(signature)))
  }
}

/// All requests of an app, as they are sent.
private final class RequestCapture: Sendable {
  private let requests = LockedValue<[HTTPRequest]>([])

  func add(_ request: HTTPRequest) { requests.withLock { $0.append(request) } }

  var all: [HTTPRequest] { requests.withLock(\.self) }

  /// URLs, fields and bodies, with all base64 in them decoded beside it.
  var bytes: [UInt8] {
    all.flatMap { request in
      let fields = request.headers.map { "\($0.name): \($0.value)\n" }.joined()
      let text =
        "\(request.method) \(request.url.absoluteString)\n\(fields)" + String(decoding: request.body, as: UTF8.self)
      let words = text.split { !($0.isLetter || $0.isNumber || "+/=".contains($0)) }
      return Array(text.utf8) + words.flatMap { Base64.decode($0) ?? [] } + words.flatMap { Hex.decode($0) ?? [] }
    }
  }

  /// The names of the fields in all bodies.
  func fieldNames() throws -> Set<String> {
    var names: Set<String> = []
    for request in all where !request.body.isEmpty {
      let object = try JSONSerialization.jsonObject(with: Data(request.body))
      names.formUnion((object as? [String: Any] ?? [:]).keys)
    }
    return names
  }
}

private struct CapturingTransport: HTTPTransport {
  let transport: any HTTPTransport
  let capture: RequestCapture

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    capture.add(request)
    return try await transport.send(request)
  }
}

@Suite("The client library, through the real gate", .serialized, .timeLimit(.minutes(5)))
struct ClientLibraryTests {
  @Test(
    "A-104 A-015 A-020 A-021 A-108 A-S06 an app enrols a key and signs in with it, by the library and a simulated phone",
    arguments: TestApp.Way.allCases)
  fileprivate func signsIn(_ way: TestApp.Way) async throws {
    try await BackendBehindGate.serving { household in
      let app = try TestApp(household, by: way)
      app.phone.plan(.approve, .approve, .approve)
      let enrolled = try await app.enroll(.userPresence)
      #expect(enrolled.deviceId == app.deviceID && enrolled.message == "Device enrolled successfully")
      let tokens = try await app.signIn()
      #expect(tokens.message == "Authentication successful" && tokens.scope == "full")
      // The permission for Face ID, the test of the key, and the sign-in.
      #expect(app.phone.shownPrompts.map(\.reason).suffix(2) == ["Test the key", "Sign in"])
      #expect(app.phone.shownPrompts.count == 3)
      let list = try await app.network.call(
        MFAOperations.devices, DevicesRequest(username: app.username), token: tokens.token)
      #expect(list.devices.map(\.deviceModel) == ["iPhone 15 Pro"] && list.devices[0].attested)
      let status = try await app.network.call(
        MFAOperations.deviceStatus, DeviceStatusRequest(deviceId: app.deviceID), token: tokens.token)
      #expect(status.enrolled && status.hasPublicKey && status.phoneNumber == "+1234567890")
    }
  }

  @Test(
    "B-050 an app connects its account at the first enrolment and signs in with an ID token, by the library",
    arguments: TestApp.Way.allCases)
  fileprivate func identityProvider(_ way: TestApp.Way) async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await ProviderServer(in: folder)
      defer { server.process.kill() }
      try await BackendBehindGate.serving(options: server.options) { household in
        let app = try TestApp(household, by: way)
        let pair = try await app.phone.createKey(app.tag, protection: .userPresence)
        let identity = try await app.identity(from: server.provider)
        let enrolled = try await app.network.call(
          MFAOperations.enroll,
          EnrollRequest(
            username: app.username, phoneNumber: nil, publicKey: Base64.encode(pair.publicKey),
            method: MFAMethod.secureEnclave.rawValue, deviceId: app.deviceID, deviceModel: nil,
            challengeId: identity.challengeId, idToken: identity.idToken))
        #expect(enrolled.deviceId == app.deviceID)
        let tokens = try await app.network.call(
          MFAOperations.signInWithIdentity, app.identity(from: server.provider))
        #expect(tokens.scope == "mfa_setup")
        await #expect {
          try await app.network.call(MFAOperations.identities, EmptyRequest(), token: tokens.token)
        } throws: {
          if case .refused(let refusal) = $0 as? NetworkError { refusal.code == "mfa_required" } else { false }
        }
        // The permission for Face ID, and the sign-in.
        app.phone.plan(.approve, .approve)
        let full = try await app.signIn()
        let list = try await app.network.call(MFAOperations.identities, EmptyRequest(), token: full.token)
        #expect(list.identities.map(\.subject) == ["ada"] && list.identities[0].lastUsedAt != nil)
        let unbound = try await app.network.call(
          MFAOperations.unbindIdentity, EmptyRequest(), token: full.token)
        #expect(unbound.message == "Identity provider disconnected")
      }
    }
  }

  @Test("A-S01 A-S02 A-S06 the view models enrol a device and sign in", arguments: [true, false])
  func screens(_ allowsFaceID: Bool) async throws {
    try await BackendBehindGate.serving { household in
      let app = try TestApp(household)
      let storage = FileStorageService(path: household.data + "-record")
      let services = DeviceServices(
        keychain: app.phone, biometrics: app.phone, backend: app.network, storage: storage,
        app: AppDescription(
          bundleID: "com.example.app", username: app.username, phoneNumber: "+1234567890",
          deviceModel: app.phone.settings.model))
      let enrolment = EnrollmentViewModel(services: services)
      await enrolment.appear()
      if allowsFaceID {
        app.phone.plan(.approve, .approve)
        await enrolment.choose(.useBiometrics)
      } else {
        app.phone.plan(.decline, .approve)
        await enrolment.choose(.useBiometrics)
        await enrolment.choose(.usePasscode)
      }
      let authMethod = allowsFaceID ? AuthMethod.biometric : .passcode
      #expect(await enrolment.state.phase == .enrolled(.secureEnclave, authMethod))
      let signIn = SignInViewModel(services: services)
      app.phone.plan(.approve)
      await signIn.choose(.signIn)
      #expect(await signIn.state.phase == .signedIn(needsSecondFactor: false))
      let token = try #require(await signIn.tokens?.token)
      let status = try await app.network.call(
        MFAOperations.deviceStatus, DeviceStatusRequest(deviceId: try storage.load().deviceID), token: token)
      #expect(status.enrolled && status.method == "secureEnclave" && status.hasPublicKey)
    }
  }

  @Test(
    "A-161 A-S10 A-108 after a switch to the passcode, the server refuses the old key and takes the new one",
    arguments: TestApp.Way.allCases)
  fileprivate func switchesMethod(_ way: TestApp.Way) async throws {
    try await BackendBehindGate.serving { household in
      let app = try TestApp(household, by: way)
      app.phone.plan(.approve, .approve, .approve)
      _ = try await app.enroll(.userPresence)
      let tokens = try await app.signIn()
      let old = try #require(try await app.phone.key(app.tag))
      let passcodeTag = KeyTag.passcode(of: "com.example.app")
      let new = try await app.phone.createKey(passcodeTag, protection: .devicePasscode)
      let answer = try await app.network.call(
        MFAOperations.upgrade,
        UpgradeRequest(
          username: app.username, deviceId: app.deviceID, publicKey: Base64.encode(new.publicKey),
          authMethod: AuthMethod.passcode.rawValue), token: tokens.token)
      #expect(answer.message == "Upgraded to Secure Enclave MFA" && old.publicKey != new.publicKey)
      app.phone.plan(.approve)
      do throws(NetworkError) {
        _ = try await refusal { try await app.signIn() }
        Issue.record("the old key signs in")
      } catch {
        guard case .refused(let refusal) = error else { throw error }
        #expect(refusal.code == "authentication_failed" && !refusal.requestID.isEmpty, "\(refusal)")
        #expect(refusal.status == (way == .rest ? 401 : nil))
      }
    }
  }

  @Test("A-180 A-181 A-187 no request has a byte of a private key, or a field that claims that biometry succeeded")
  func capture() async throws {
    try await BackendBehindGate.serving { household in
      let (capture, saved) = (RequestCapture(), LockedValue<[SavedPhone]>([]))
      let phone = try SimulatedPhone(SavedPhone(settings: .faceID)) { phone in saved.withLock { $0.append(phone) } }
      let app = try TestApp(household, phone: phone, capture: capture)
      let services = DeviceServices(
        keychain: phone, biometrics: phone, backend: app.network, storage: MemoryStorageService(deviceID: app.deviceID),
        app: AppDescription(
          bundleID: "com.example.app", username: app.username, phoneNumber: "+1234567890", deviceModel: "iPhone"))
      let log = EventLog(now: { .now() })
      let model = TestingViewModel(services: services, log: log, declineNextPrompt: { phone.plan(.decline) })
      phone.plan(.approve, .approve)
      await model.run(.enrollWithBiometrics)
      phone.plan(.approve, .approve)
      await model.run(.testAuthentication)
      await model.run(.reenroll)
      phone.plan(.approve)
      try await phone.evaluate(.biometrics, reason: "Open the app")
      await model.run(.simulateDecline)
      await model.run(.switchToSMS)
      #expect(log.entries.filter { $0.source == .app }.allSatisfy { $0.outcome == .success }, "\(log.entries)")
      let keys = Set(saved.withLock(\.self).flatMap(\.keys).map(\.privateKeyPEM))
      #expect(keys.count == 2)
      let bytes = capture.bytes
      for pem in keys {
        let scalar = [UInt8](try P256.Signing.PrivateKey(pemRepresentation: pem).rawRepresentation)
        #expect(scalar.count == 32 && bytes.firstRange(of: scalar) == nil)
        #expect(bytes.firstRange(of: Array(Hex.encode(scalar).utf8)) == nil)
      }
      // The capture would show it: the public half is there.
      let sent = capture.all.filter { $0.url.path.hasSuffix("/mfa/enroll") }
      #expect(sent.count == 1 && String(decoding: sent[0].body, as: UTF8.self).contains("publicKey"))
      #expect(
        try capture.fieldNames() == [
          "attestation", "authMethod", "challengeId", "deviceId", "deviceModel", "keyId", "method", "nonce",
          "phoneNumber", "publicKey", "signature", "username",
        ])
      let text = "\(log.entries)"
      #expect(!keys.contains { text.contains($0) })
    }
  }

  /// Passes errors of the network on; any other error fails the test.
  private func refusal<Value: Sendable>(_ body: () async throws -> Value) async throws(NetworkError) -> Value? {
    do {
      return try await body()
    } catch let error as NetworkError {
      throw error
    } catch {
      Issue.record(error)
      return nil
    }
  }
}
