import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import Wire
import Locking
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing

@Suite("Registration")
struct RegistrationTests {
  private let bench: GateBench
  init() throws { bench = try GateBench() }

  private func denial(_ claim: RegistrationClaim, by registrar: Registrar? = nil) async -> Denial? {
    do throws(Denial) {
      _ = try await (registrar ?? bench.registrar).register(claim)
      return nil
    } catch {
      return error
    }
  }

  @Test("A genuine device is registered: key, app, receipt and counter 0 are stored")
  func genuine() async throws {
    let device = try bench.device(claims: AppClaims(validationCategory: 3, bundleVersion: "7"))
    let registered = try await bench.register(device)
    let record = try #require(try await bench.store.record(of: device.keyID))
    #expect(registered.app.text == GateBench.appID && !registered.isRepetition)
    #expect(record.key.publicKey == device.key.publicKey.x963)
    #expect(record.key.environment == .development && record.key.validationCategory == .development)
    #expect(record.counter == .zero)
    #expect(try await bench.store.receipt(of: device.keyID) != nil)
  }

  @Test(
    "Key id and attestation may be in another form of base64; the stored key is the same",
    arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) async throws {
    let device = try bench.device()
    let claim = try device.registration(over: try bench.nonce(), at: bench.clock.now)
    let other = RegistrationClaim(
      keyID: form.text(claim.keyID), attestation: form.text(claim.attestation), nonce: claim.nonce)
    #expect(try await bench.registrar.register(other).keyID == device.keyID)
    #expect(try await bench.store.record(of: device.keyID)?.key.keyID.base64 == claim.keyID)
    // The same request in the standard form is a repetition: the bytes are compared.
    #expect(try await bench.registrar.register(claim).isRepetition)
    for text in [claim.attestation + "*", "-_+/" + claim.attestation.dropFirst(4), " " + claim.attestation] {
      let broken = RegistrationClaim(keyID: claim.keyID, attestation: text, nonce: claim.nonce)
      #expect(await denial(broken) == .valueMalformed(.attestation, rule: "must be base64"))
    }
  }

  @Test("A repeated request gets the same answer at any later time and does not change the counter")
  func idempotent() async throws {
    let device = try bench.device()
    let claim = try device.registration(over: try bench.nonce(), at: bench.clock.now)
    _ = try await bench.registrar.register(claim)
    _ = try await bench.gate.admit(try device.claim(over: try bench.nonce(), count: 4))
    for wait in [0, 59, 3600, 86_400 * 30] {
      bench.clock.advance(by: .seconds(wait))
      #expect(try await bench.registrar.register(claim).isRepetition)
    }
    #expect(try await bench.store.record(of: device.keyID)?.counter == SignCount(4))
  }

  @Test("A repeated request is refused after the key was revoked")
  func revoked() async throws {
    let device = try bench.device()
    let claim = try device.registration(over: try bench.nonce(), at: bench.clock.now)
    let registered = try await bench.registrar.register(claim)
    _ = try await bench.store.revoke(device.keyID, at: bench.clock.now)
    #expect(await denial(claim) == .keyRevoked(registered.app))
  }

  @Test("The same request is refused after the configuration stopped accepting the key")
  func repetitionUnderAnotherPolicy() async throws {
    let device = try bench.device()
    let claim = try device.registration(over: try bench.nonce(), at: bench.clock.now)
    let app = try await bench.registrar.register(claim).app
    let appID = try #require(AppID(app.text))
    let other = try #require(AppID("AAABBBCCC1.com.example.other"))
    let refusingMissing = CategoryPolicy(allowed: nil, whenMissing: .refuse)
    let policies: [(AppPolicy, Denial)] = [
      (AppPolicy(appID: other, environments: [.development]), .appNotServed(app)),
      (AppPolicy(appID: appID, environments: [.production]), .environmentRefused(.development, app)),
      (
        AppPolicy(appID: appID, environments: [.development], categories: refusingMissing),
        .categoryRefused(nil, app)
      ),
    ]
    for (policy, expected) in policies {
      #expect(await denial(claim, by: try bench.registrar(for: [policy])) == expected)
    }
    #expect(try await bench.registrar.register(claim).isRepetition)
  }

  @Test("A second registration of a key never replaces the first")
  func secondRegistration() async throws {
    let device = try await bench.registeredDevice()
    let before = try await bench.store.record(of: device.keyID)
    let second = try device.registration(over: try bench.nonce(), at: bench.clock.now)
    #expect(await denial(second) == .keyExists)
    #expect(try await bench.store.record(of: device.keyID) == before)
  }

  @Test("T-52 A nonce that registered one device registers no other device and admits no client")
  func oneNonce() async throws {
    let (first, second, nonce) = (try bench.device(), try bench.device(), try bench.nonce())
    _ = try await bench.registrar.register(try first.registration(over: nonce, at: bench.clock.now))
    #expect(await denial(try second.registration(over: nonce, at: bench.clock.now)) == .nonceUsed)
    await #expect(throws: Denial.nonceUsed) { try await bench.gate.admit(try first.claim(over: nonce, count: 1)) }
  }

  @Test("E-006 The nonce is valid until 60.000 s after its issue", arguments: [(60_000, true), (60_001, false)])
  func boundary(_ milliseconds: Int, isGood: Bool) async throws {
    let (device, nonce) = (try bench.device(), try bench.nonce())
    let claim = try device.registration(over: nonce, at: bench.clock.now)
    let age = Duration.milliseconds(milliseconds)
    bench.clock.advance(by: age)
    #expect(await denial(claim) == (isGood ? nil : .nonceRefused(.expired(age: age))))
  }

  @Test("A malformed value is refused and named")
  func malformedValues() async throws {
    let good = try bench.device().registration(over: try bench.nonce(), at: bench.clock.now)
    for keyID in ["", "AAAA", good.keyID + "=", "\t" + good.keyID, String(good.keyID.dropLast(2))] {
      let claim = RegistrationClaim(keyID: keyID, attestation: good.attestation, nonce: good.nonce)
      #expect(await denial(claim)?.code == .malformedValue, "\(keyID)")
    }
    for attestation in ["", "*", good.attestation + "=", " " + good.attestation] {
      let claim = RegistrationClaim(keyID: good.keyID, attestation: attestation, nonce: good.nonce)
      #expect(await denial(claim)?.code == .malformedValue)
    }
    let claim = RegistrationClaim(keyID: good.keyID, attestation: good.attestation, nonce: good.nonce.uppercased())
    #expect(await denial(claim) == .nonceMalformed)
  }

  @Test("An invalid attestation is refused and does not spend the nonce")
  func badAttestation() async throws {
    let (nonce, genuineDevice) = (try bench.nonce(), try bench.device())
    let cases: [(GateRefusalCode, @Sendable (inout MintedDevice) throws -> Void)] = [
      (.malformedAttestation, { $0.attestations.alterations.statement = { $0.trailer = [0] } }),
      (.nonceMismatch, { $0.attestations.alterations.statement = { $0.authenticatorData[36] ^= 1 } }),
      (.counterReplayed, { $0.attestations.alterations.authenticatorData = { $0.signCount = 1 } }),
      (.rpIDMismatch, { $0.attestations.alterations.authenticatorData = { $0.rpIDHash[0] ^= 1 } }),
      (
        .environmentMismatch,
        {
          $0.attestations.alterations.authenticatorData = {
            $0.credential?.aaguid = Array("appattest\0\0\0\0\0\0\0".utf8)
          }
        }
      ),
      (.keyIDMismatch, { $0.attestations.alterations.authenticatorData = { $0.credential?.credentialID[0] ^= 1 } }),
      (.receiptRefused, { $0.attestations.alterations.receipt = { $0[text: 2] = "AAABBBCCC1.com.example.other" } }),
      (
        .certExpired,
        { [now = bench.clock.now] in
          $0.attestations.alterations.leaf = { $0.notAfter = now.advanced(by: .seconds(-1)) }
        }
      ),
    ]
    for (code, corrupt) in cases {
      var device = try bench.device()
      try corrupt(&device)
      #expect(await denial(try device.registration(over: nonce, at: bench.clock.now))?.code == code)
      #expect(try await bench.store.record(of: device.keyID) == nil)
    }
    #expect(await denial(try genuineDevice.registration(over: nonce, at: bench.clock.now)) == nil)
  }

  @Test("An attestation with another root is refused")
  func otherRoot() async throws {
    let otherAuthority = try TestAuthority(appID: GateBench.appID, at: bench.clock.now)
    let device = try MintedDevice(app: SimulatedApp(appID: GateBench.appID), authority: otherAuthority)
    #expect(
      await denial(try device.registration(over: try bench.nonce(), at: bench.clock.now))?.code == .chainUntrusted)
  }

  @Test("E-007 An attestation for another challenge, or for the challenge's text, is refused")
  func otherChallenge() async throws {
    let (device, nonce) = (try bench.device(), try bench.nonce())
    for hash in [try bench.nonce().clientDataHash.bytes, SHA256.hash(Array(nonce.text.utf8))] {
      let object = try device.attestations.attestation(of: device.key, clientDataHash: hash, at: bench.clock.now)
      let claim = RegistrationClaim(
        keyID: device.keyID.base64, attestation: Base64.encode(object), nonce: nonce.text)
      #expect(await denial(claim)?.code == .nonceMismatch)
    }
  }

  @Test("A receipt of the later kind, whose client data hash cannot be compared, is refused")
  func newerReceipt() async throws {
    var device = try bench.device()
    for hash in [SHA256.hash([]), nil] {
      device.attestations.alterations.receipt = {
        $0[text: 6] = "RECEIPT"
        $0[4] = hash
      }
      let found = await denial(try device.registration(over: try bench.nonce(), at: bench.clock.now))
      #expect(found == .attestationRefused(.receipt(.unexpectedKind(.receipt))))
      #expect(found?.report.step == "attestation_receipt_client_data_hash" && found?.code == .receiptRefused)
    }
  }

  @Test(
    "A receipt is fresh up to 5 minutes before and after now",
    arguments: [(-300, true), (-301, false), (300, true), (301, false), (0, true)])
  func receiptFreshness(_ seconds: Int, isFresh: Bool) async throws {
    var device = try bench.device()
    let created = bench.clock.now.advanced(by: .seconds(seconds))
    device.attestations.alterations.receipt = { $0[text: 12] = created.description }
    let found = await denial(try device.registration(over: try bench.nonce(), at: bench.clock.now))
    #expect(found == (isFresh ? nil : .receiptNotFresh(created: created, now: bench.clock.now)))
  }

  @Test("A device that sends its attestation late shows nothing about the clock, and is told to attest a new key")
  func late() async throws {
    let (witness, challenges) = (ClockWitness(), Challenges(storage: bench.store, life: .seconds(600)))
    try await challenges.prepare()
    let registrar = try bench.registrar(witness: witness, challenges: challenges)
    var device = try bench.device()
    let created = bench.clock.now.advanced(by: .seconds(2))
    device.attestations.alterations.receipt = { $0[text: 12] = created.description }
    let nonce = try #require(challenges.issue(at: bench.clock.now)?.nonce)
    bench.clock.advance(by: .seconds(305))
    let found = try #require(await denial(try device.registration(over: nonce, at: created), by: registrar))
    #expect(found == .receiptTooOld(created: created, now: bench.clock.now) && found.code == .receiptRefused)
    #expect(witness.fault == nil)
  }

  @Test(
    "A gate whose clock is wrong asks for patience and says so until a registration is in time",
    arguments: [-86_400 * 400, -86_400 * 20, -360, 360, 86_400 * 20, 86_400 * 400])
  func wrongClock(_ ahead: Int) async throws {
    let witness = ClockWitness()
    let registrar = try bench.registrar(witness: witness)
    let genuine = bench.clock.now
    bench.clock.advance(by: .seconds(ahead))
    var device = try bench.device()
    device.attestations.alterations.receipt = { $0[text: 12] = genuine.description }
    let claim = try device.registration(over: try bench.nonce(), at: genuine)
    let denial = try #require(await denial(claim, by: registrar))
    #expect(denial == .receiptNotFresh(created: genuine, now: bench.clock.now))
    #expect(denial.code == .clockWrong && denial.code.definition.status == 503)
    #expect(denial.code.definition.retryAfter == 300 && denial.code.definition.advice == .retryLater)
    let side = ahead < 0 ? "behind" : "ahead of"
    let text = "the gate's clock is \(abs(ahead)) seconds \(side) Apple's"
    #expect(denial.report.detail?.hasPrefix(text) == true)
    #expect(witness.fault?.text == text && witness.fault?.seenAt == bench.clock.now)
    // Nothing is spent: the same request is accepted once the clock is right.
    bench.clock.advance(by: .seconds(-ahead))
    _ = try await registrar.register(try device.registration(over: try bench.nonce(), at: genuine))
    #expect(witness.fault == nil)
  }

  @Test("The witness of the clock reports the begin and the end of a fault, and no registration between them")
  func clockChanges() async throws {
    let changes = LockedValue<[Bool]>([])
    let registrar = try bench.registrar(witness: ClockWitness { fault in changes.withLock { $0.append(fault != nil) } })
    for (ahead, count) in [(0, 0), (400, 1), (500, 1), (-400, 1), (0, 2), (0, 2), (301, 3), (300, 4)] {
      let genuine = bench.clock.now
      bench.clock.advance(by: .seconds(ahead))
      var device = try bench.device()
      device.attestations.alterations.receipt = { $0[text: 12] = genuine.description }
      _ = await denial(try device.registration(over: try bench.nonce(), at: genuine), by: registrar)
      bench.clock.advance(by: .seconds(-ahead))
      #expect(changes.withLock(\.count) == count, "\(ahead)")
    }
    #expect(changes.withLock(\.self) == [true, false, true, false])
  }

  @Test("A wrong clock hides no other fault, and a fault of the dates alone at a right clock is none of the clock")
  func wrongClockAndMore() async throws {
    let witness = ClockWitness()
    let registrar = try bench.registrar(witness: witness)
    let genuine = bench.clock.now
    // The leaf ended before its receipt was made.
    var device = try bench.device()
    device.attestations.alterations.leaf = { $0.notAfter = genuine.advanced(by: .seconds(-1)) }
    var claim = try device.registration(over: try bench.nonce(), at: genuine)
    #expect(await denial(claim, by: registrar)?.code == .certExpired)
    bench.clock.advance(by: .seconds(86_400 * 400))
    claim = try device.registration(over: try bench.nonce(), at: genuine)
    #expect(await denial(claim, by: registrar)?.code == .certExpired)
    // Another nonce, which any old attestation has.
    device = try bench.device()
    let old = try device.registration(over: try bench.nonce(), at: genuine)
    claim = RegistrationClaim(keyID: old.keyID, attestation: old.attestation, nonce: try bench.nonce().text)
    #expect(await denial(claim, by: registrar)?.code == .certExpired)
    // A receipt that was changed.
    device.attestations.alterations.receipt = { $0[text: 2] = "AAABBBCCC1.com.example.other" }
    claim = try device.registration(over: try bench.nonce(), at: genuine)
    #expect(await denial(claim, by: registrar)?.code == .certExpired)
    #expect(witness.fault == nil)
  }

  @Test(
    "The policy on validation categories decides",
    arguments: [
      (UInt32?.none, CategoryPolicy.Missing.accept, true), (nil, .refuse, false), (4, .refuse, true),
      (3, .accept, false),
      (99, .accept, false),
    ])
  func categories(_ category: UInt32?, _ missing: CategoryPolicy.Missing, isAccepted: Bool) async throws {
    let appID = try #require(AppID(GateBench.appID))
    let policy = CategoryPolicy(allowed: [.appStore, .testFlight], whenMissing: missing)
    let bench = try GateBench(apps: [AppPolicy(appID: appID, environments: [.development], categories: policy)])
    let device = try bench.device(claims: category.map { AppClaims(validationCategory: $0) })
    let found = await denial(
      try device.registration(over: try bench.nonce(), at: bench.clock.now), by: bench.registrar)
    let expected = Denial.categoryRefused(category.map(ValidationCategory.init(rawValue:)), AppName(appID))
    #expect(found == (isAccepted ? nil : expected))
  }

  @Test("Without a configured app, registration is refused")
  func notConfigured() async throws {
    let bench = try GateBench(apps: [])
    let claim = try bench.device().registration(over: try bench.nonce(), at: bench.clock.now)
    #expect(await denial(claim, by: bench.registrar) == .notConfigured)
  }

  @Test("Of 50 identical simultaneous requests, one stores the key and all succeed")
  func race() async throws {
    let claim = try bench.device().registration(over: try bench.nonce(), at: bench.clock.now)
    let repetitions = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { [bench] in try await bench.registrar.register(claim).isRepetition } }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(repetitions == 49)
  }
}
