import AndroidKeyAttestation
import AppAttest
import ByteCoding
import Cryptography
import GateFixtures
import Wire
import Locking
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing

@testable import AttestGate

@Suite("Android devices")
struct AndroidTests {
  private let mint: AndroidMint
  private let bench: AndroidBench

  init() throws {
    mint = try AndroidMint.factory()
    bench = try AndroidBench(trusting: mint)
  }

  // MARK: Registration

  @Test("A genuine device is registered with what its attestation says, and without a receipt")
  func genuine() async throws {
    let registered = try await bench.register(mint)
    #expect(registered.app == AppName(package: AndroidMint.package) && !registered.isRepetition)
    let record = try #require(try await bench.store.record(of: try mint.keyID))
    guard case .android(let key) = record.key.attestation else {
      Issue.record("the key is not one of Android")
      return
    }
    #expect(key.securityLevel == .trustedEnvironment && key.bootState == .verified)
    #expect(key.patchLevel?.description == "2026-05" && key.signers == [AndroidMint.signer])
    #expect(key.serialNumbers.count == 4 && key.provisioning == .factory)
    #expect(record.key.environment == .production)
    #expect(try await bench.store.receipt(of: try mint.keyID) == nil)
  }

  @Test("A repeated request gets the same answer at any later time, until the key is revoked")
  func repetition() async throws {
    let claim = try bench.claim(mint, over: try bench.nonce())
    _ = try await bench.registrar.register(claim)
    for wait in [0, 3600, 86_400 * 30] {
      bench.clock.advance(by: .seconds(wait))
      #expect(try await bench.registrar.register(claim).isRepetition)
    }
    _ = try await bench.store.revoke(try mint.keyID, at: bench.clock.now)
    await #expect(throws: Denial.keyRevoked(AppName(package: AndroidMint.package))) {
      try await bench.registrar.register(claim)
    }
  }

  @Test("A second chain for a registered key is refused, and one nonce registers one key")
  func once() async throws {
    try await bench.register(mint)
    #expect(try await bench.denial(mint) == .keyExists)
    let nonce = try bench.nonce()
    let other = try AndroidBench.mint(below: mint)
    _ = try await bench.registrar.register(try bench.claim(other, over: nonce))
    await #expect(throws: Denial.nonceUsed) {
      try await bench.registrar.register(try bench.claim(AndroidBench.mint(below: mint), over: nonce))
    }
  }

  static let refusals: [(String, GateRefusalCode, @Sendable (inout AndroidMint) throws -> Void)] = [
    (
      "another package", .appRefused,
      {
        $0.description.software[709] = MintedKeyDescription.application(
          packages: ["com.example.evil"], signers: [AndroidMint.signer])
      }
    ),
    (
      "another signer", .appRefused,
      {
        $0.description.software[709] = MintedKeyDescription.application(
          packages: [AndroidMint.package], signers: [SHA256.hash([1])])
      }
    ),
    ("software", .deviceRefused, { $0.description.levels = (0, 0) }),
    ("an imported key", .deviceRefused, { $0.description.hardware[702] = DER.integer(2) }),
    ("a key that may not sign", .deviceRefused, { $0.description.hardware[1] = DER.set(of: [DER.integer(3)]) }),
    (
      "an unlocked boot loader", .deviceRefused,
      {
        $0.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 0)
      }
    ),
    (
      "a system of the owner", .deviceRefused,
      {
        $0.description.hardware[704] = MintedKeyDescription.rootOfTrust(state: 1)
      }
    ),
    ("no extension", .chainUntrusted, { $0.attests = false }),
    ("a foreign root", .chainUntrusted, { $0 = try AndroidMint.factory() }),
  ]

  @Test("Each broken rule is refused with its code, and spends nothing", arguments: refusals)
  func refused(_ name: String, _ code: GateRefusalCode, _ change: @Sendable (inout AndroidMint) throws -> Void)
    async throws
  {
    var changed = mint
    try change(&changed)
    let denial = try #require(try await bench.denial(changed))
    #expect(denial.code == code)
    #expect(denial.report.text.hasPrefix("The attestation is refused: "))
    #expect(try await bench.store.count() == 0)
  }

  @Test("The attestation of another challenge is refused")
  func otherChallenge() async throws {
    let claim = try bench.claim(mint, over: try bench.nonce())
    let nonce = try bench.nonce()
    let other = AndroidRegistrationClaim(chain: claim.chain, nonce: nonce.text)
    let denial = await #expect(throws: Denial.self) { try await bench.registrar.register(other) }
    #expect(denial?.code == .nonceMismatch)
    // The nonce is still valid, so the log must not have it.
    #expect(denial?.report.detail == "challenge_differs")
  }

  @Test("Chains of 0, 1, 11 and 50 certificates, of too many bytes or of no certificates are malformed")
  func malformedChains() async throws {
    let nonce = try bench.nonce()
    let certificate = try #require(try bench.claim(mint, over: nonce).chain.first)
    let long = Base64.encode([UInt8](repeating: 0x30, count: 40_000))
    let chains: [[String]] =
      [0, 1, 11, 50].map { Array(repeating: certificate, count: $0) } + [[long, long], ["AAAA", "AAAA"]]
    for chain in chains {
      let claim = AndroidRegistrationClaim(chain: chain, nonce: nonce.text)
      let denial = await #expect(throws: Denial.self) { try await bench.registrar.register(claim) }
      #expect(denial?.code == .malformedAttestation, "\(chain.count)")
    }
    for chain in [["", certificate], ["?", certificate]] {
      let claim = AndroidRegistrationClaim(chain: chain, nonce: nonce.text)
      let denial = await #expect(throws: Denial.self) { try await bench.registrar.register(claim) }
      #expect(denial?.code == .malformedValue)
    }
  }

  @Test("A chain is judged by the app that it names, among several")
  func severalApps() async throws {
    let other = AndroidAppPolicy(package: "com.example.aaa", signers: [SHA256.hash([9])])
    let bench = try AndroidBench(trusting: mint, [other, AndroidBench.policy])
    #expect(try await bench.denial(mint) == nil)
    // Apps that share a user of the system are in one attestation: the first policy that it fulfils is chosen.
    var shared = try AndroidBench.mint(below: mint)
    shared.description.software[709] = MintedKeyDescription.application(
      packages: ["com.example.aaa", AndroidMint.package], signers: [AndroidMint.signer])
    #expect(try await bench.denial(shared) == nil)
    #expect(try await bench.store.record(of: try shared.keyID)?.key.app.text == AndroidMint.package)
  }

  @Test("Without an Android app registration says so, and without an iOS app too")
  func unconfigured() async throws {
    let appID = try #require(AppID(GateBench.appID))
    let ios = try AndroidBench(
      trusting: mint, [], ios: [AppPolicy(appID: appID, environments: [.development])])
    #expect(try await ios.denial(mint) == .platformNotConfigured(.android))
    #expect(Denial.platformNotConfigured(.android).report.text == "Server not configured for Android")
    await #expect(throws: Denial.platformNotConfigured(.ios)) {
      try await bench.registrar.register(
        RegistrationClaim(keyID: try mint.keyID.base64, attestation: "AAAA", nonce: try bench.nonce().text))
    }
    let none = try AndroidBench(trusting: mint, [])
    #expect(try await none.denial(mint) == .notConfigured)
  }

  @Test("Certificates may be in another form of base64; the stored key is the same", arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) async throws {
    let claim = try bench.claim(mint, over: bench.nonce())
    // The default encoder of Android breaks lines after 76 digits.
    let lines = claim.chain.map { text in
      stride(from: 0, to: text.utf8.count, by: 76).map { String(form.text(text).dropFirst($0).prefix(76)) }
        .joined(separator: "\n") + "\n"
    }
    let registered = try await bench.registrar.register(AndroidRegistrationClaim(chain: lines, nonce: claim.nonce))
    #expect(try registered.keyID == mint.keyID && !registered.isRepetition)
    // The bytes are compared.
    #expect(try await bench.registrar.register(claim).isRepetition)
    var broken = claim.chain
    broken[0] += "*"
    await #expect(throws: Denial.self) {
      try await bench.registrar.register(AndroidRegistrationClaim(chain: broken, nonce: claim.nonce))
    }
  }

  @Test("The packages that choose the policy are compared as bytes")
  func packagesAsBytes() throws {
    var changed = mint
    // The Kelvin sign, which is K by canonical equivalence.
    changed.description.software[709] = MintedKeyDescription.application(
      packages: ["com.example.\u{212A}it"], signers: [AndroidMint.signer])
    let names = try AndroidCertificateChain(changed.chain()).packageNames
    #expect(names == [Array("com.example.\u{212A}it".utf8)] && !names.contains(Array("com.example.Kit".utf8)))
  }

  // MARK: Revoked certificates

  private func list(_ serials: [[UInt8]]) throws -> AndroidStatusList {
    let entries = serials.map { "\"\(AndroidStatusList.text(ofSerial: $0))\":{\"status\":\"REVOKED\"}" }
    return try AndroidStatusList(Array("{\"entries\":{\(entries.joined(separator: ","))}}".utf8), allowsNone: true)
  }

  @Test("A chain with a listed certificate is refused; without a list that is new enough every chain is")
  func revokedCertificates() async throws {
    let bench = try AndroidBench(trusting: mint, maximumAge: .seconds(3600))
    #expect(try await bench.denial(mint)?.code == .statusListUnavailable)
    let batch = mint.certificates[1].serialNumber
    bench.revocations.replace(by: .init(try list([batch]), currentAt: bench.clock.now))
    #expect(try await bench.denial(mint)?.code == .attestationRevoked)
    bench.clock.advance(by: .seconds(1))
    bench.revocations.replace(by: .init(try list([]), currentAt: bench.clock.now))
    bench.clock.advance(by: .seconds(3601))
    #expect(try await bench.denial(mint) == .statusListUnavailable(age: .seconds(3601)))
    bench.clock.advance(by: .seconds(-3600))
    #expect(try await bench.denial(mint) == nil)
  }

  @Test("A list from a clock that was ahead becomes too old, counted from its first use after the correction")
  func listOfClockAhead() async throws {
    let bench = try AndroidBench(trusting: mint, maximumAge: .seconds(3600))
    let ahead = bench.clock.now.advanced(by: .seconds(31_536_000))
    bench.revocations.replace(by: .init(try list([]), currentAt: ahead))
    #expect(try await bench.denial(mint) == nil)
    bench.clock.advance(by: .seconds(3601))
    #expect(try await bench.denial(mint) == .statusListUnavailable(age: .seconds(3601)))
  }

  @Test("A key whose chain is listed while its registration waits for the store is revoked, refused and reported")
  func listedMeanwhile() async throws {
    let bench = try AndroidBench(trusting: mint, maximumAge: .seconds(3600))
    bench.revocations.replace(by: .init(try list([[0x77]]), currentAt: bench.clock.now))
    let batch = mint.certificates[1].serialNumber
    let news = RevokedCertificates.Dated(try list([batch]), currentAt: bench.clock.now)
    let registry = RefreshingRegistry(bench.store) { [revocations = bench.revocations] in
      revocations.replace(by: news)
    }
    let reports = LockedValue<[AndroidVerification.Revocation]>([])
    let registrar = try bench.rules(
      trusting: mint, registry: registry, report: { report in reports.withLock { $0.append(report) } }
    ).registrar
    let keyID = try mint.keyID
    #expect(try await bench.denial(mint, by: registrar) == .keyRevoked(AppName(package: AndroidMint.package)))
    #expect(try await bench.store.record(of: keyID)?.revokedAt == bench.clock.now)
    let reported = reports.withLock(\.self)
    #expect(reported.map(\.key) == [KeyHash(of: keyID)])
    #expect(reported.map(\.serial) == [AndroidStatusList.text(ofSerial: batch)])
    #expect(await bench.denial(try mint.proof(over: try bench.nonce())) != nil)
  }

  @Test("A list that was just read replaces one of any date; one of an earlier process or another source does not")
  func replacedList() throws {
    let revocations = RevokedCertificates(maximumAge: .seconds(60))
    let now = bench.clock.now
    revocations.configure(maximumAge: .seconds(60), source: "a")
    revocations.standIn(.init(try list([[1], [2], [3]]), currentAt: now))
    revocations.replace(by: .init(try list([[1], [2]]), currentAt: now.advanced(by: .seconds(9))))
    revocations.standIn(.init(try list([[1], [2], [3]]), currentAt: now))
    revocations.replace(by: .init(try list([[1]]), currentAt: now))
    #expect(revocations.current?.list.count == 1)
    revocations.configure(maximumAge: .seconds(90), source: "a")
    #expect(revocations.current?.list.count == 1)
    revocations.configure(maximumAge: .seconds(90), source: "b")
    #expect(revocations.current == nil)
  }

  // MARK: Admission

  @Test("A registered device is admitted by its signature, once for each nonce")
  func admitted() async throws {
    try await bench.register(mint)
    let nonce = try bench.nonce()
    let admission = try await bench.gate.admit(try mint.proof(over: nonce))
    guard case .device(let device) = admission.principal else {
      Issue.record("the device is not the principal")
      return
    }
    #expect(device.keyID == (try mint.keyID) && device.app == AppName(package: AndroidMint.package))
    #expect(admission.principal.method == "android-key" && device.counter == nil)
    #expect(await bench.denial(try mint.proof(over: nonce)) == .nonceUsed)
    #expect(await bench.denial(try mint.proof(over: try bench.nonce())) == nil)
  }

  @Test("An unknown key, another key's signature and another nonce's are refused alike, and spend nothing")
  func refusedProofs() async throws {
    try await bench.register(mint)
    let other = try AndroidBench.mint(below: mint)
    let nonce = try bench.nonce()
    let wrong = [
      try other.proof(over: nonce), try other.proof(over: nonce, keyID: try mint.keyID),
      AdmissionClaim(headers: [
        .keyID: try mint.keyID.base64, .nonce: nonce.text,
        .data: Base64.encode(
          try mint.key.signature(
            for: AndroidKeyProof.message(nonce: try bench.nonce().bytes, publicKey: try mint.publicKey),
            digest: .sha256)),
      ]),
      AdmissionClaim(headers: [.keyID: try mint.keyID.base64, .nonce: nonce.text, .data: Base64.encode([0x30, 0])]),
    ]
    for claim in wrong { #expect(await bench.denial(claim)?.code == .keyRefused) }
    #expect(await bench.denial(try mint.proof(over: nonce)) == nil)
  }

  @Test("Of 50 concurrent upgrades with one nonce, one is admitted")
  func race() async throws {
    try await bench.register(mint)
    let claim = try mint.proof(over: try bench.nonce())
    let admitted = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 { group.addTask { [bench] in await bench.denial(claim) == nil } }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(admitted == 1)
  }

  @Test("A key of one platform never verifies the proof of the other, even if its own key signed it")
  func platforms() async throws {
    let appID = try #require(AppID(GateBench.appID))
    let bench = try AndroidBench(
      trusting: mint, ios: [AppPolicy(appID: appID, environments: [.development])])
    let ios = try GateBench()
    let device = try ios.device()
    // An iOS key that signs what an Android key would sign.
    let key = AttestedKey(
      keyID: device.keyID, publicKey: device.key.publicKey.x963, appID: appID, environment: .development)
    let request = RegistrationRequest(nonce: try bench.nonce(), attestationDigest: AttestationDigest(of: [1]))
    _ = try await bench.store.register(
      Registration(key: DeviceKey(key), receipt: [1], request: request, registeredAt: bench.clock.now))
    let nonce = try bench.nonce()
    let signature = try device.key.signature(
      for: AndroidKeyProof.message(nonce: nonce.bytes, publicKey: device.key.publicKey))
    let claim = AdmissionClaim(headers: [
      .keyID: device.keyID.base64, .data: Base64.encode(signature), .nonce: nonce.text,
    ])
    #expect(await bench.denial(claim) == .platformMismatch(AppName(appID)))
    // The iOS key itself is admitted.
    #expect(await bench.denial(try device.claim(over: nonce, count: 1)) == nil)
    // An assertion under the name of an Android key.
    try await bench.register(mint)
    let headers = try device.headers(over: try bench.nonce(), count: 2)
    let crossed = AdmissionClaim(headers: headers.merging([.keyID: try mint.keyID.base64]) { $1 })
    #expect(await bench.denial(crossed) == .platformMismatch(AppName(package: AndroidMint.package)))
  }

  @Test("A changed policy counts for keys that are registered already")
  func changedPolicy() async throws {
    try await bench.register(mint)
    var strict = AndroidBench.policy
    strict.minimumSecurityLevel = .strongBox
    var recent = AndroidBench.policy
    recent.minimumPatchLevel = PatchLevel(year: 2026, month: 6)
    var remote = AndroidBench.policy
    remote.requiresRemoteProvisioning = true
    let resigned = AndroidAppPolicy(package: AndroidMint.package, signers: [SHA256.hash([2])])
    let other = AndroidAppPolicy(package: "com.example.other", signers: [AndroidMint.signer])
    let cases: [(AndroidAppPolicy, GateRefusalCode)] = [
      (strict, .deviceRefused), (recent, .deviceRefused), (remote, .deviceRefused), (resigned, .appRefused),
      (other, .appRefused),
    ]
    for (policy, code) in cases {
      let gate = try bench.rules(trusting: mint, [policy]).gate
      #expect(await bench.denial(try mint.proof(over: try bench.nonce()), at: gate)?.code == code)
    }
    let real = try bench.rules(trusting: mint, [AndroidBench.policy], environment: .development).gate
    #expect(
      await bench.denial(try mint.proof(over: try bench.nonce()), at: real)?.code == .environmentMismatch)
  }

  @Test("Without an Android app a signature is a malformed assertion")
  func proofWithoutApp() async throws {
    let ios = try GateBench()
    let claim = try mint.proof(over: try ios.nonce())
    let denial = await #expect(throws: Denial.self) { try await ios.gate.admit(claim) }
    #expect(denial?.code == .malformedAssertion)
  }

  // MARK: Texts

  @Test("What is stored about a key is read again, and nothing else is")
  func evidence() async throws {
    try await bench.register(mint)
    let record = try #require(try await bench.store.record(of: try mint.keyID))
    guard case .android(let key) = record.key.attestation else { return }
    func read(_ text: String) -> AttestedAndroidKey? {
      AttestedAndroidKey(publicKey: key.publicKey, package: key.package, evidenceText: text)
    }
    let text = key.evidenceText
    #expect(read(text) == key)
    let broken = [
      "", text + " ", text + " more=1", text + " boot=verified", text.replacing("boot=verified", with: "boot=fine"),
      text.replacing("level=tee ", with: ""), text.replacing("level=tee", with: "level=software"),
      text.replacing("boot=verified", with: "boot=failed"), text.replacing("patch=2026-05", with: "patch=May"),
      text.replacing("signers=", with: "signers=0"),
    ]
    for text in broken { #expect(read(text) == nil, "\(text)") }
    #expect(read(text.replacing("patch=2026-05 ", with: ""))?.patchLevel == nil)
    #expect(read(text.replacing("patch=2026-05 ", with: "")) != nil)
  }

  // MARK: Refusals by the form of the proof

  @Test("A refusal costs a lookup and a verification, for an unknown key, a wrong signature and either form of proof")
  func stepsOfRefusals() async throws {
    let steps = LockedValue<[Stopwatch.Work]>([])
    let appID = try #require(AppID(GateBench.appID))
    let bench = try AndroidBench(
      trusting: mint, ios: [AppPolicy(appID: appID, environments: [.development])],
      stopwatch: Stopwatch { work, _ in steps.withLock { $0.append(work) } })
    try await bench.register(mint)
    let (stranger, assertions) = (try P256PrivateKey(), AssertionMint(app: SimulatedApp(appID: GateBench.appID)))
    for keyID in [try mint.keyID, KeyID(ofPublicKey: stranger.publicKey.x963)] {
      let (nonce, other) = (try bench.nonce(), try AndroidBench.mint(below: mint))
      let assertion = try assertions.assertion(
        by: stranger, clientDataHash: nonce.clientDataHash.bytes, signCount: 1)
      let claims = [
        AdmissionClaim(headers: [.keyID: keyID.base64, .data: Base64.encode(assertion), .nonce: nonce.text]),
        try other.proof(over: nonce, keyID: keyID),
      ]
      for claim in claims {
        steps.withLock { $0 = [] }
        #expect(await bench.denial(claim)?.code == .keyRefused)
        #expect(steps.withLock { $0.sorted { $0.rawValue < $1.rawValue } } == [.assertion, .lookup])
      }
    }
  }

  @Test("The key that stands in for one of Android is verified with its signature, not refused by its name")
  func standIn() throws {
    let key = try P256PrivateKey()
    let evidence = try #require(
      AttestedAndroidKey(
        publicKey: key.publicKey.x963, package: AndroidMint.package,
        evidenceText: try evidence(of: mint)))
    let standIn = try #require(AssertionRule.standIn(for: DeviceKey(evidence, environment: .production)))
    let nonce = try bench.nonce()
    func rejection(_ signer: P256PrivateKey) throws -> AssertionRejection? {
      let bytes = try AssertionMint(app: SimulatedApp(appID: GateBench.appID)).assertion(
        by: signer, clientDataHash: nonce.clientDataHash.bytes, signCount: 1)
      do throws(AssertionRejection) {
        _ = try AssertionVerifier().verify(
          Assertion(bytes), by: standIn, publicKey: key.publicKey, clientDataHash: nonce.clientDataHash, after: .zero)
        return nil
      } catch {
        return error
      }
    }
    // The rule after the signature is reached, so the signature was verified.
    if case .rpIDMismatch = try rejection(key) {} else { Issue.record("the signature was not verified") }
    #expect(try rejection(try P256PrivateKey()) == .invalidSignature)
  }

  private func evidence(of mint: AndroidMint) throws -> String {
    let verifier = AndroidAttestationVerifier(policy: AndroidBench.policy, roots: [try IssuerKey(spki: mint.rootKey)])
    return try verifier.verify(
      AndroidCertificateChain(mint.chain()), challenge: AndroidMint.challenge, statusList: nil, at: AndroidMint.instant
    ).evidenceText
  }
}

extension AndroidBench {
  /// Another device of the same batch.
  static func mint(below mint: AndroidMint) throws -> AndroidMint {
    var other = mint
    other.certificates[0].key = try ECPrivateKey(.p256)
    other.certificates[0].subjectPublicKeyInfo = other.key.spki
    return other
  }
}

/// A registry in which something happens before a registration returns.
private final class RefreshingRegistry: KeyRegistry {
  private let store: SQLiteStore
  private let afterInsertion: @Sendable () -> Void

  init(_ store: SQLiteStore, afterInsertion: @escaping @Sendable () -> Void) {
    (self.store, self.afterInsertion) = (store, afterInsertion)
  }

  func register(_ registration: Registration) async throws(StoreError) -> Insertion {
    let insertion = try await store.register(registration)
    afterInsertion()
    return insertion
  }

  func record(of keyID: KeyID) async throws(StoreError) -> KeyRecord? { try await store.record(of: keyID) }
  func receipt(of keyID: KeyID) async throws(StoreError) -> [UInt8]? { try await store.receipt(of: keyID) }
  func admit(_ use: KeyUse) async throws(StoreError) -> Admittance { try await store.admit(use) }

  func revoke(_ keyID: KeyID, at now: Timestamp) async throws(StoreError) -> Bool {
    try await store.revoke(keyID, at: now)
  }

  func restore(_ keyID: KeyID) async throws(StoreError) -> Bool { try await store.restore(keyID) }

  func forgetNonces(issuedBy instant: Timestamp) async throws(StoreError) {
    try await store.forgetNonces(issuedBy: instant)
  }
}
