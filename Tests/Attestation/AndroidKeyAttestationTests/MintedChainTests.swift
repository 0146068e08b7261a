import ByteCoding
import Cryptography
import SimulatedDevice
import TestSupport
import Testing

@testable import AndroidKeyAttestation

@Suite("Minted chains")
struct MintedChainTests {
  @Test(
    "A minted chain is accepted, from the factory and provisioned remotely, with and without its root",
    arguments: [false, true])
  func valid(_ omitsRoot: Bool) throws {
    for (mint, provisioning) in [(try AndroidMint.factory(), KeyProvisioning.factory), (try .remote(), .remote)] {
      var attempt = Attempt(mint: mint)
      attempt.mint.omitsRoot = omitsRoot
      #expect(try attempt.rejections().isEmpty)
      let key = try AndroidAttestationVerifier(
        policy: attempt.policy, roots: [IssuerKey(spki: mint.rootKey)]
      ).verify(
        AndroidCertificateChain(attempt.mint.chain()), challenge: AndroidMint.challenge, statusList: nil,
        at: AndroidMint.instant)
      #expect(key.publicKey == mint.key.x963)
      #expect(key.keyID == SHA256.hash(mint.key.x963))
      #expect(key.provisioning == provisioning)
      #expect(key.securityLevel == .trustedEnvironment)
      #expect(key.bootState == .verified)
      #expect(key.patchLevel == PatchLevel("2026-05"))
      #expect(key.serialNumbers.first == [1])
    }
  }

  @Test("A chain that breaks one rule is rejected with its code, and its twin is accepted", arguments: BrokenRule.all)
  func broken(_ rule: BrokenRule) throws {
    var (broken, twin) = (try rule.attempt(), try rule.attempt())
    try rule.breaks(&broken)
    let rejections = try broken.rejections()
    #expect(Set(rejections.map(\.code)) == Set(rule.codes))
    #expect(rejections.allSatisfy { !$0.description.isEmpty && $0.description != $0.code })
    try rule.mends(&twin)
    #expect(try twin.rejections().map(\.code) == [])
  }

  @Test("Every step has a chain that breaks it")
  func covered() throws {
    var steps: Set<AndroidAttestationStep> = []
    // One chain for each set of codes: to mint them takes most of the time.
    for rule in Dictionary(grouping: BrokenRule.all, by: \.codes).compactMap(\.value.first) {
      var attempt = try rule.attempt()
      try rule.breaks(&attempt)
      steps.formUnion(try attempt.rejections().map(\.step))
    }
    #expect(steps == Set(AndroidAttestationStep.allCases))
  }

  @Test("Several broken rules are listed in the order of the steps")
  func lists() throws {
    var attempt = Attempt(mint: try .factory())
    attempt.challenge = []
    attempt.policy.package = "com.example.other"
    attempt.policy.signers = []
    attempt.mint.certificates[0].damagesSignature = true
    attempt.roots = [try ECPrivateKey(.p256).spki]
    #expect(
      try attempt.rejections().map(\.code) == [
        "signature[0]", "root_unknown", "challenge_differs", "package_differs", "signer_differs",
      ])
  }

  @Test("A root that another root certified ends a chain by its key; without it the chain holds, too")
  func crossCertifiedRoot() throws {
    var mint = try AndroidMint.factory()
    let root = try IssuerKey(spki: mint.rootKey)
    mint.certificates[3].issuer = MintedCertificate.name([3: "another root"])
    let chain = try mint.chain()
    let policy = AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer])
    for (chain, isAccepted) in [(chain, true), (chain.dropLast(), true), (chain.dropLast(2), false)] {
      let rejections = rejectionsOf(
        Array(chain), policy: policy, roots: [root], challenge: AndroidMint.challenge, statusList: nil,
        at: AndroidMint.instant, remembering: VerifiedSignatureCache())
      #expect(rejections.isEmpty == isAccepted, "\(rejections.map(\.code))")
    }
  }

  @Test("A verified authority is remembered by all of its bytes and its issuer's key, a refused one never")
  func remembers() throws {
    let cache = VerifiedSignatureCache(capacity: 4)
    let mint = try AndroidMint.factory()
    let root = try IssuerKey(spki: mint.rootKey)
    let policy = AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer])
    func codes(_ chain: [[UInt8]], trusted: IssuerKey) throws -> [String] {
      rejectionsOf(
        chain, policy: policy, roots: [trusted], challenge: AndroidMint.challenge, statusList: nil,
        at: AndroidMint.instant, remembering: cache
      ).map(\.code)
    }
    let stranger = try AndroidMint.factory()
    #expect(try codes(stranger.chain(), trusted: root) == ["root_unknown"])
    #expect(cache.count == 0)
    let chain = try mint.chain()
    let refused = rejectionsOf(
      chain, policy: policy, roots: [root], challenge: [1], statusList: nil, at: AndroidMint.instant, remembering: cache
    )
    #expect(refused.map(\.code) == ["challenge_differs"] && cache.count == 0)
    #expect(try codes(chain, trusted: root).isEmpty)
    #expect(cache.count == 2)  // the authority and the root
    var changed = chain
    changed[2][chain[2].count - 1] ^= 1
    #expect(try codes(changed, trusted: root).contains("signature[2]"))
    #expect(try codes(chain, trusted: IssuerKey(spki: stranger.rootKey)) == ["root_unknown"])
    for _ in 0..<3 {
      let other = try AndroidMint.factory()
      #expect(try codes(other.chain(), trusted: IssuerKey(spki: other.rootKey)).isEmpty)
    }
    #expect(cache.count == 4)
  }

  @Test("A chain with a changed byte or a missing end is not accepted", arguments: 0..<4)
  func changedByte(_ position: Int) throws {
    let attempt = Attempt(mint: try .factory())
    let chain = try attempt.mint.chain()
    let roots = [try IssuerKey(spki: attempt.mint.rootKey)]
    let cache = VerifiedSignatureCache()
    func isRefused(_ chain: [[UInt8]]) -> Bool {
      !rejectionsOf(
        chain, policy: attempt.policy, roots: roots, challenge: attempt.challenge, statusList: nil,
        at: attempt.instant, remembering: cache
      ).isEmpty
    }
    #expect(!isRefused(chain))
    // Verification is slow: every eleventh byte.
    for offset in stride(from: position, to: chain[position].count, by: 11) {
      var changed = chain
      changed[position][offset] ^= 1
      // A root counts by its key: if another one seems to have issued it, nothing else in it is trusted.
      let isCrossCertified = (try? Certificate(der: changed[position])).map {
        position == 3 && $0.issuerName != $0.subjectName && $0.subjectPublicKeyInfo == roots[0].spki
      }
      #expect(isRefused(changed) || isCrossCertified == true, "certificate \(position), byte \(offset)")
    }
    for count in stride(from: 0, to: chain[position].count, by: 3) {
      var changed = chain
      changed[position] = Array(chain[position].prefix(count))
      #expect(isRefused(changed))
    }
  }

  @Test("Random and damaged bytes are refused without a crash", arguments: 0..<4 as Range<UInt64>)
  func survives(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let mint = try AndroidMint.factory()
    let (chain, description) = (try mint.chain(), mint.description.encoded)
    for _ in 0..<400 {
      var damaged = description
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let offset = Int.random(in: 0..<damaged.count - 8, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: damaged[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: damaged.remove(at: offset)
        case 2: damaged.insert(damaged[offset], at: offset)
        default: damaged[offset] = [0, 0x7F, 0x80, 0xFF, 0xBF].randomElement(using: &generator) ?? 0
        }
      }
      _ = try? KeyDescription(damaged)
      let garbage = (0..<Int.random(in: 0..<300, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      #expect((try? KeyDescription(garbage)) == nil)
      #expect((try? AndroidCertificateChain([chain[0], garbage])) == nil)
      #expect((try? AndroidStatusList(garbage)) == nil)
    }
    for count in description.indices { #expect((try? KeyDescription(Array(description.prefix(count)))) == nil) }
  }

  @Test(
    "Dates of a leaf that cannot be read refuse nothing, those of an issuer refuse the chain",
    arguments: UnreadableDates.all)
  func unreadableDates(_ validity: [UInt8]) throws {
    var attempt = Attempt(mint: try .remote())
    attempt.mint.certificates[0].validity = validity
    #expect(try attempt.rejections().map(\.code) == [])
    let leaf = try AndroidCertificateChain(attempt.mint.chain()).leaf
    #expect(!leaf.hasReadableValidity && leaf.notAfter < leaf.notBefore)
    #expect(throws: CryptographyError.self) { try Certificate(der: leaf.der) }
    let explanation = AndroidAttestationVerifier(
      policy: attempt.policy, roots: [try IssuerKey(spki: attempt.mint.rootKey)]
    )
    .explain(
      try attempt.mint.chain(), challenge: attempt.challenge, statusList: nil, at: attempt.instant)
    #expect(explanation.holds)
    #expect("\(explanation)".contains("cannot be read; the dates of a leaf do not count"))
    for position in 1...4 {
      var issuer = Attempt(mint: try .remote())
      issuer.mint.certificates[position].validity = validity
      #expect(try issuer.rejections().map(\.code) == ["malformed_certificate[\(position)]"])
    }
  }

  @Test("A leaf may write out that extensions are not critical, and what its basicConstraints leave out")
  func writtenDefaults() throws {
    var mint = try AndroidMint.factory()
    let description = MintedCertificate.encodedExtension(
      AndroidMint.attestationExtension, critical: 0, mint.description.encoded)
    let notAnAuthority = DER.sequence(DER.boolean(false), DER.integer(0))
    mint.attests = false
    mint.certificates[0].extensions = [
      MintedCertificate.encodedExtension("2.5.29.15", critical: 0, DER.bitString([0x80], unused: 7)),
      MintedCertificate.encodedExtension("2.5.29.19", critical: 0, notAnAuthority), description,
    ]
    #expect(try Attempt(mint: mint).rejections().map(\.code) == [])
    // The bytes count: a second signature is over other ones.
    var chain = try mint.chain()
    chain[0][chain[0].count - 1] ^= 1
    let changed = chain
    #expect(try Attempt(mint: mint, change: { _ in changed }).rejections().map(\.code) == ["signature[0]"])
  }

  @Test("A value of another form refuses nothing in the list where no rule reads it, and the chain in the other list")
  func otherForms() throws {
    // Purpose, origin, root of trust and patch level, which the hardware states, and the app, which the system states.
    for tag in [1, 702, 704, 706, 709] {
      func codes(inHardware: Bool) throws -> [String] {
        var attempt = Attempt(mint: try .factory())
        if inHardware {
          attempt.mint.description.hardware[tag] = DER.null
        } else {
          attempt.mint.description.software[tag] = DER.null
        }
        return try attempt.rejections().map(\.code)
      }
      let isOfHardware = tag != 709
      #expect(try codes(inHardware: !isOfHardware) == [], "\(tag)")
      #expect(try codes(inHardware: isOfHardware) == ["malformed_key_description"], "\(tag)")
    }
  }

  @Test("Versions and tags that are not known are kept")
  func keepsUnknown() throws {
    var description = try AndroidMint.factory().description
    description.versions = (12345, 1 << 40)
    description.furtherElements = DER.explicit(799, DER.octetString([1])) + DER.explicit(2_000_000, DER.null)
    let parsed = try KeyDescription(description.encoded)
    #expect(parsed.attestationVersion == 12345)
    #expect(parsed.keyMintVersion == 1 << 40)
    #expect(
      parsed.hardwareEnforced.unknown == [
        .init(tag: 799, value: [4, 1, 1]), .init(tag: 2_000_000, value: [5, 0]),
      ])
  }
}
