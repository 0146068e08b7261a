import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateFixtures
import Wire
import Locking
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing

@Suite("Admission")
struct AdmissionTests {
  private let bench: GateBench
  private let device: MintedDevice
  private let certificate = VerifiedCertificate(
    fingerprint: [UInt8](repeating: 1, count: 32), subject: "CN=MudApp Debug Client",
    expiresAt: Timestamp(seconds: .max), authorities: [[2]])

  init() async throws {
    bench = try GateBench()
    device = try await bench.registeredDevice()
  }

  private func denial(_ claim: AdmissionClaim, at gate: Gate? = nil) async -> Denial? {
    do throws(Denial) {
      _ = try await (gate ?? bench.gate).admit(claim)
      return nil
    } catch {
      return error
    }
  }

  @Test("A registered device is admitted with a fresh assertion, and the admission identifies the device")
  func genuine() async throws {
    let admission = try await bench.gate.admit(try device.claim(over: try bench.nonce(), count: 1))
    guard case .device(let principal) = admission.principal else {
      Issue.record("the device is not the principal")
      return
    }
    #expect(principal.keyID == device.keyID && principal.app.text == GateBench.appID)
    #expect(principal.counter == SignCount(1) && principal.environment == .development)
    #expect(admission.at == bench.clock.now)
  }

  @Test("A client without credentials is refused")
  func nothing() async throws {
    #expect(await denial(AdmissionClaim(headers: [:])) == .noCredentials)
  }

  @Test("A verified client certificate admits without an assertion")
  func debugPath() async throws {
    let admission = try await bench.gate.admit(AdmissionClaim(headers: [:], certificate: certificate))
    #expect(admission.principal == .certificate(certificate))
  }

  @Test("A certificate is ignored if the debug path is off")
  func debugPathOff() async throws {
    let bench = try GateBench(certificates: nil)
    #expect(await denial(AdmissionClaim(headers: [:], certificate: certificate), at: bench.gate) == .noCredentials)
  }

  @Test("If subjects are listed, only certificates with a listed subject are accepted")
  func subjects() async throws {
    let bench = try GateBench(certificates: ClientCertificateRule(allowedSubjects: ["CN=Someone"]))
    let claim = AdmissionClaim(headers: [:], certificate: certificate)
    #expect(await denial(claim, at: bench.gate) == .certificateRefused(subject: certificate.subject))
  }

  @Test(
    "With an assertion and a certificate, the assertion decides: the certificate does not replace an invalid assertion",
    arguments: [true, false]
  )
  func noFallThrough(isGood: Bool) async throws {
    let nonce = try bench.nonce()
    var headers = try device.headers(over: nonce, count: 1)
    if !isGood { headers[.nonce] = try bench.nonce().text }
    let claim = AdmissionClaim(headers: headers, certificate: certificate)
    if isGood {
      #expect(try await bench.gate.admit(claim).principal.method == "app-attest")
    } else {
      #expect(await denial(claim)?.code == .keyRefused)
    }
  }

  @Test("E-012 A partial set of the three headers is refused, even with a good certificate", arguments: 1..<7)
  func partialHeaders(_ selection: Int) async throws {
    var headers = try device.headers(over: try bench.nonce(), count: 1)
    let names = AssertionClaim.Name.allCases
    for (index, name) in names.enumerated() where selection & (1 << index) == 0 { headers[name] = nil }
    let missing = try #require(names.first { headers[$0] == nil })
    #expect(await denial(AdmissionClaim(headers: headers, certificate: certificate)) == .partMissing(missing))
  }

  @Test("A repeated header is refused, even with a good certificate", arguments: AssertionClaim.Name.allCases)
  func repeatedHeader(_ name: AssertionClaim.Name) async throws {
    let headers = try device.headers(over: try bench.nonce(), count: 1)
    let assertion = AssertionClaim { $0 == name ? .repeated : headers[$0].map(AssertionClaim.Part.once) ?? .absent }
    #expect(await denial(AdmissionClaim(assertion: assertion, certificate: certificate)) == .partRepeated(name))
  }

  @Test("A malformed header is refused")
  func malformedHeaders() async throws {
    let good = try device.headers(over: try bench.nonce(), count: 1)
    let faults: [(AssertionClaim.Name, [String], GateRefusalCode)] = [
      (.keyID, ["", "x", "AAAA", device.keyID.base64 + " "], .malformedHeader),
      (.keyID, ["-" + device.keyID.base64, "-_+/" + device.keyID.base64.dropFirst(4)], .malformedHeader),
      (.data, ["*", "AAA=A", "+_AA", "\u{0}"], .malformedHeader),
      (.data, ["", "AAAA", Base64.encode(SecureRandom.bytes(5000))], .malformedAssertion),
      (.nonce, ["", "x", String(repeating: "F", count: 64)], .nonceInvalid),
    ]
    for (name, values, code) in faults {
      for value in values {
        var headers = good
        headers[name] = value
        #expect(await denial(AdmissionClaim(headers: headers))?.code == code, "\(name): \(value)")
      }
    }
  }

  @Test("Key id and assertion may be in any form of base64; the key is the same")
  func otherBase64() async throws {
    for (count, form) in zip(1..., OtherBase64.allCases) {
      let nonce = try bench.nonce()
      var headers = try device.headers(over: nonce, count: UInt32(count))
      for name in [AssertionClaim.Name.keyID, .data] { headers[name] = headers[name].map(form.text) }
      guard case .device(let principal) = try await bench.gate.admit(AdmissionClaim(headers: headers)).principal else {
        Issue.record("the device is not the principal")
        return
      }
      #expect(principal.keyID == device.keyID && principal.keyHash == KeyHash(of: device.keyID))
      // The same proof in the standard form is a replay, and not another key's.
      let again = try device.headers(over: nonce, count: UInt32(count))
      #expect(await denial(AdmissionClaim(headers: again)) == .nonceUsed)
    }
    #expect(try await bench.store.record(of: device.keyID)?.counter == SignCount(UInt32(OtherBase64.allCases.count)))
  }

  @Test("An assertion works once: the replay is a used nonce")
  func replay() async throws {
    let claim = try device.claim(over: try bench.nonce(), count: 1)
    _ = try await bench.gate.admit(claim)
    #expect(await denial(claim) == .nonceUsed)
  }

  @Test("Of 50 simultaneous upgrades with one assertion, one is admitted")
  func race() async throws {
    let claim = try device.claim(over: try bench.nonce(), count: 1)
    let admitted = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { await denial(claim) == nil } }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(admitted == 1)
  }

  @Test("A used counter is refused and does not spend the nonce; gaps are normal")
  func counters() async throws {
    let nonce = try bench.nonce()
    _ = try await bench.gate.admit(try device.claim(over: try bench.nonce(), count: 5))
    for count: UInt32 in [5, 4, 1] {
      let found = await denial(try device.claim(over: nonce, count: count))
      #expect(found?.code == .counterReplayed && found?.report.step == "assertion_counter")
    }
    #expect(await denial(try device.claim(over: nonce, count: 0))?.code == .counterReplayed)
    #expect(await denial(try device.claim(over: nonce, count: 900)) == nil)
  }

  @Test("With a counter window, sockets that arrive out of order are all admitted, once each")
  func window() async throws {
    let bench = try GateBench(window: try #require(CounterWindow(4)))
    let device = try await bench.registeredDevice()
    for count: UInt32 in [5, 3, 4, 1, 2] {
      #expect(await denial(try device.claim(over: try bench.nonce(), count: count), at: bench.gate) == nil)
    }
    for count: UInt32 in 0...5 {
      let again = try device.claim(over: try bench.nonce(), count: count)
      #expect(await denial(again, at: bench.gate)?.code == .counterReplayed)
    }
  }

  @Test("E-013 An unknown key and a wrong signature get the same answer; the log distinguishes them")
  func keyRefused() async throws {
    let otherDevice = try bench.device()
    let unknown = try #require(await denial(try otherDevice.claim(over: try bench.nonce(), count: 1)))
    var headers = try otherDevice.headers(over: try bench.nonce(), count: 1)
    headers[.keyID] = device.keyID.base64
    let unsigned = try #require(await denial(AdmissionClaim(headers: headers)))
    #expect(unknown.code == .keyRefused && unsigned.code == .keyRefused)
    #expect(unknown.report.step == "key_unknown" && unsigned.report.step == "assertion_signature")
  }

  @Test("For unknown, cached and registered keys, a refusal costs the same: one lookup, one verification")
  func stepsOfRefusals() async throws {
    let steps = LockedValue<[Stopwatch.Work]>([])
    let bench = try GateBench(stopwatch: Stopwatch { work, _ in steps.withLock { $0.append(work) } })
    let (remembered, registered) = (try await bench.registeredDevice(), try await bench.registeredDevice())
    #expect(await denial(try remembered.claim(over: try bench.nonce(), count: 1), at: bench.gate) == nil)
    let signer = try bench.device()
    for keyID in [signer.keyID, remembered.keyID, registered.keyID] {
      var headers = try signer.headers(over: try bench.nonce(), count: 1)
      headers[.keyID] = keyID.base64
      steps.withLock { $0 = [] }
      #expect(await denial(AdmissionClaim(headers: headers), at: bench.gate)?.code == .keyRefused)
      #expect(Set(steps.withLock { $0 }) == [.lookup, .assertion] && steps.withLock(\.count) == 2)
    }
  }

  @Test("A wrong signature does not spend the nonce of another client")
  func nonceBurning() async throws {
    let nonce = try bench.nonce()
    let thief = try await bench.registeredDevice()
    var headers = try thief.headers(over: nonce, count: 1)
    headers[.keyID] = device.keyID.base64
    #expect(await denial(AdmissionClaim(headers: headers))?.code == .keyRefused)
    #expect(await denial(try device.claim(over: nonce, count: 1)) == nil)
  }

  @Test("E-007 A signature over another nonce, over the nonce's text, or over a single hash is refused")
  func otherMessages() async throws {
    let nonce = try bench.nonce()
    for hash in [SHA256.hash(Array(nonce.text.utf8)), try bench.nonce().clientDataHash.bytes, nonce.bytes] {
      let assertion = try device.assertions.assertion(by: device.key, clientDataHash: hash, signCount: 1)
      let headers: [AssertionClaim.Name: String] = [
        .keyID: device.keyID.base64, .data: Base64.encode(assertion), .nonce: nonce.text,
      ]
      #expect(await denial(AdmissionClaim(headers: headers))?.code == .keyRefused)
    }
  }

  @Test("An assertion for another app is refused")
  func otherApp() async throws {
    var device = device
    device.assertions = AssertionMint(app: SimulatedApp(appID: "AAABBBCCC1.com.example.other"))
    #expect(await denial(try device.claim(over: try bench.nonce(), count: 1))?.code == .rpIDMismatch)
  }

  @Test("E-006 The nonce is valid until 60.000 s after its issue", arguments: [(60_000, true), (60_001, false)])
  func boundary(_ milliseconds: Int, isGood: Bool) async throws {
    let claim = try device.claim(over: try bench.nonce(), count: 1)
    let age = Duration.milliseconds(milliseconds)
    bench.clock.advance(by: age)
    #expect(await denial(claim) == (isGood ? nil : .nonceRefused(.expired(age: age))))
  }

  @Test("A spent nonce stays spent after its record is removed and the clock is set back")
  func clockBack() async throws {
    let nonce = try bench.nonce()
    let issue = bench.clock.now
    _ = try await bench.gate.admit(try device.claim(over: nonce, count: 1))
    bench.clock.advance(by: .seconds(71))
    _ = try await StoreMaintenance(
      store: bench.store, challenges: bench.challenges, clock: bench.clock.wallClock
    ).run()
    bench.clock.advance(by: issue.since(bench.clock.now))
    #expect(await denial(try device.claim(over: nonce, count: 2)) == .nonceUsed)
  }

  @Test("A revoked key is refused even if it is cached; a restored key is admitted")
  func revocation() async throws {
    _ = try await bench.gate.admit(try device.claim(over: try bench.nonce(), count: 1))
    let appID = try #require(AppID(GateBench.appID))
    _ = try await bench.store.revoke(device.keyID, at: bench.clock.now)
    let nonce = try bench.nonce()
    #expect(await denial(try device.claim(over: nonce, count: 2)) == .keyRevoked(AppName(appID)))
    _ = try await bench.store.restore(device.keyID)
    #expect(await denial(try device.claim(over: nonce, count: 2)) == nil)
  }

  @Test("The validation category in the assertion takes precedence over the one in the attestation")
  func categories() async throws {
    let appID = try #require(AppID(GateBench.appID))
    let policy = CategoryPolicy(allowed: [.testFlight, .appStore], whenMissing: .accept)
    let bench = try GateBench(apps: [AppPolicy(appID: appID, environments: [.development], categories: policy)])
    var device = try await bench.registeredDevice(claims: AppClaims(validationCategory: 2))
    for (count, (category, isGood)) in [(UInt32(4), true), (3, false), (2, true)].enumerated() {
      let app = SimulatedApp(appID: GateBench.appID, claims: AppClaims(validationCategory: category))
      device.assertions = AssertionMint(app: app)
      let found = await denial(try device.claim(over: try bench.nonce(), count: UInt32(count) + 1), at: bench.gate)
      #expect(found == (isGood ? nil : .categoryRefused(ValidationCategory(rawValue: category), AppName(appID))))
    }
  }

  @Test("E-030 A key is refused if its app is no longer configured, or not for its environment")
  func changedConfiguration() async throws {
    let appID = try #require(AppID(GateBench.appID))
    let other = try #require(AppID("AAABBBCCC1.com.example.other"))
    for (policy, expected) in [
      (AppPolicy(appID: other, environments: [.development]), Denial.appNotServed(AppName(appID))),
      (AppPolicy(appID: appID, environments: [.production]), .environmentRefused(.development, AppName(appID))),
    ] {
      let apps = try #require(AllowedApps([policy]))
      let rule = try AssertionRule(apps: apps, challenges: bench.challenges, registry: bench.store)
      let gate = Gate(rules: [rule], clock: bench.clock.wallClock)
      #expect(await denial(try device.claim(over: try bench.nonce(), count: 1), at: gate) == expected)
    }
  }

  @Test("Without a configured app, an assertion is refused as not configured")
  func notConfigured() async throws {
    let bench = try GateBench(apps: [])
    #expect(await denial(try device.claim(over: try bench.nonce(), count: 1), at: bench.gate) == .notConfigured)
    #expect(await denial(AdmissionClaim(headers: [:]), at: bench.gate) == .noCredentials)
  }

  @Test("With enforcement off, every client is admitted and no nonce is spent")
  func open() async throws {
    let bench = try GateBench(enforcement: .off)
    #expect(try await bench.gate.admit(AdmissionClaim(headers: [:])).principal == .anyone)
    let claim = try device.claim(over: try bench.nonce(), count: 1)
    #expect(try await bench.gate.admit(claim).principal == .anyone)
  }

  @Test("Monitor mode admits refused clients anonymously and spends nonces like enforcement")
  func monitor() async throws {
    let bench = try GateBench(enforcement: .monitor)
    let device = try await bench.registeredDevice()
    let claim = try device.claim(over: try bench.nonce(), count: 1)
    let proved = try await bench.gate.admit(claim)
    #expect(proved.principal.method == "app-attest" && proved.overruled == nil)
    let replay = try await bench.gate.admit(claim)
    #expect(replay.principal == .anyone && replay.overruled == .nonceUsed)
    let anonymous = try await bench.gate.admit(AdmissionClaim(headers: [:]))
    #expect(anonymous.principal == .anyone && anonymous.overruled == .noCredentials)
  }

  @Test("Only monitor mode overrules a denial", arguments: [Gate.Enforcement.enforce, .off])
  func overruling(_ enforcement: Gate.Enforcement) throws {
    let gate = Gate(rules: [], enforcement: enforcement)
    #expect(throws: Denial.keyExists) { try gate.overrule(.keyExists) }
  }

  @Test("An unreachable store causes a refusal; the gate recovers once the store is reachable")
  func storeFault() async throws {
    let folder = bench.folder.file("later")
    let late = try GateBench(registry: SQLiteStore(path: folder + "/state.db"))
    let claim = try device.claim(over: try late.nonce(), count: 1)
    #expect(await denial(claim, at: late.gate)?.code == .storeUnavailable)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(await denial(claim, at: late.gate) == .unknownKey)
  }

  @Test("All keys are admitted, even when there are more than the cache can keep")
  func forgottenKeys() async throws {
    let appID = try #require(AppID(GateBench.appID))
    let apps = try #require(AllowedApps([AppPolicy(appID: appID, environments: [.development])]))
    let rule = try AssertionRule(apps: apps, challenges: bench.challenges, registry: bench.store, recentKeys: 2)
    let gate = Gate(rules: [rule], clock: bench.clock.wallClock)
    var devices: [MintedDevice] = []
    for _ in 0..<7 { devices.append(try await bench.registeredDevice()) }
    for count: UInt32 in 1...3 {
      for device in devices {
        #expect(await denial(try device.claim(over: try bench.nonce(), count: count), at: gate) == nil)
      }
    }
  }
}
