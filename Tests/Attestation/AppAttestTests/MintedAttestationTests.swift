import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

/// An attestation with one fault, and the rule that refuses it.
struct BrokenAttestation: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let step: String
  let alter: @Sendable (inout AttestationAlterations) throws -> Void

  init(_ name: String, _ step: String, _ alter: @escaping @Sendable (inout AttestationAlterations) throws -> Void) {
    testDescription = name
    self.step = step
    self.alter = alter
  }
}

@Suite("Attestations that violate one rule")
struct MintedAttestationTests {
  static let broken: [BrokenAttestation] = format + chain + leaf + authenticatorData

  private static let format: [BrokenAttestation] = [
    .init("another format", "format") { $0.statement = { $0.format = "packed" } },
    .init("an additional member", "format") { $0.statement = { $0.additions = [("more", [])] } },
    .init("a member twice", "format") { $0.statement = { $0.additions = [("authData", [])] } },
    .init("no receipt", "format") { $0.statement = { $0.receipt = nil } },
    .init("a trailing byte", "format") { $0.statement = { $0.trailer = [0] } },
    .init("no certificate", "format") { $0.statement = { $0.chain = [] } },
    .init("a leaf alone", "format") { $0.statement = { $0.chain.removeLast() } },
    .init("three certificates", "format") {
      let root = try Minted.authority.get().attestationRoot.certificate.der
      $0.statement = { $0.chain.append(root) }
    },
    .init("a malformed certificate", "format") { $0.statement = { $0.chain[1] = [0x30, 0x00] } },
    .init("more than 16 KiB", "format") {
      $0.statement = { $0.additions = [("more", [UInt8](repeating: 0, count: 16384))] }
    },
    .init("an empty receipt", "receipt_format") { $0.statement = { $0.receipt = [] } },
  ]

  private static let chain: [BrokenAttestation] = [
    .init("a leaf from another authority", "certificate_chain") {
      $0.leafIssuer = try Minted.otherAuthority.get().attestationIntermediate
    },
    .init("a leaf that the root issued directly", "certificate_chain") {
      $0.leafIssuer = try Minted.authority.get().attestationRoot
    },
    .init("a leaf from the authority for receipts", "certificate_chain") {
      $0.leafIssuer = try Minted.authority.get().receiptIntermediate
    },
    .init("leaf and intermediate in reverse order", "certificate_chain") { $0.statement = { $0.chain.reverse() } },
    .init("the leaf twice", "certificate_chain") { $0.statement = { $0.chain[1] = $0.chain[0] } },
    .init("an expired leaf", "certificate_chain") {
      $0.leaf = { $0.notAfter = Minted.instant.advanced(by: .seconds(-1)) }
    },
    .init("a leaf that is not yet valid", "certificate_chain") {
      $0.leaf = { $0.notBefore = Minted.instant.advanced(by: .seconds(1)) }
    },
    .init("a leaf that is an authority", "certificate_chain") {
      $0.leaf = { $0.extensions[0] = .basicConstraints(isAuthority: true) }
    },
    .init("a leaf whose key is not for signatures", "certificate_chain") {
      $0.leaf = { $0.extensions[1] = .keyUsage([.keyEncipherment]) }
    },
    .init("a leaf with an unknown critical extension", "certificate_chain") {
      let identifier = try #require(ObjectIdentifier("1.3.6.1.4.1.55555.1"))
      $0.leaf = { $0.extensions.append(CertificateExtension(identifier, isCritical: true, value: DER.null)) }
    },
    .init("a leaf on another curve", "certificate_chain") {
      let spki = try ECPrivateKey(.p384).spki
      let other = try Minted.authority.get().receiptSigner.certificate.der
      $0.leaf = { $0.subjectPublicKeyInfo = spki }
      // Otherwise the receipt would be refused first, for the same key.
      $0.receipt = { $0[3] = other }
    },
  ]

  private static let leaf: [BrokenAttestation] = [
    .init("a leaf without a nonce", "nonce") { $0.leaf = { $0.extensions.removeLast() } },
    .init("another nonce", "nonce") { alterNonce(of: &$0) { $0[$0.count - 1] ^= 1 } },
    .init("a nonce that is too long", "nonce") {
      alterNonce(of: &$0) { $0 = DER.sequence(DER.context(1, DER.octetString([UInt8](repeating: 0, count: 33)))) }
    },
    .init("a nonce under another tag", "nonce") { alterNonce(of: &$0) { $0[2] = 0xA2 } },
    .init("a nonce with trailing data", "nonce") { alterNonce(of: &$0) { $0 += DER.null } },
    .init("a bare nonce", "nonce") { alterNonce(of: &$0) { $0 = Array($0.dropFirst(4)) } },
    .init("the nonce in another extension", "nonce") {
      let other = try #require(ObjectIdentifier("1.2.840.113635.100.8.9"))
      $0.leaf = { $0.extensions[$0.extensions.count - 1].identifier = other }
    },
    .init("a leaf with another key", "key_id") {
      let spki = try P256PrivateKey().publicKey.spki
      $0.leaf = { $0.subjectPublicKeyInfo = spki }
    },
  ]

  private static let authenticatorData: [BrokenAttestation] = [
    .init("another app", "rp_id") { $0.authenticatorData = { $0.rpIDHash = SHA256.hash([]) } },
    .init("T-45 the bundle identifier without its team", "rp_id") {
      $0.authenticatorData = { $0.rpIDHash = SHA256.hash(Array("com.example.app".utf8)) }
    },
    .init("a counter that is not 0", "counter") { $0.authenticatorData = { $0.signCount = 1 } },
    .init("a counter that wraps", "counter") { $0.authenticatorData = { $0.signCount = .max } },
    .init("an unknown environment", "environment") { $0.authenticatorData = { $0.credential?.aaguid[0] ^= 1 } },
    .init("the environment's name alone", "environment") {
      $0.authenticatorData = { $0.credential?.aaguid = Array("appattestproduct".utf8) }
    },
    .init("no aaguid", "environment") {
      $0.authenticatorData = { $0.credential?.aaguid = .init(repeating: 0, count: 16) }
    },
    .init("another credential", "credential_id") {
      $0.authenticatorData = { $0.credential?.credentialID = SHA256.hash([]) }
    },
    .init("a short credential", "format") { $0.authenticatorData = { $0.credential?.credentialID.removeLast() } },
    .init("a long credential", "format") { $0.authenticatorData = { $0.credential?.credentialID.append(0) } },
    .init("no credential", "format") { $0.authenticatorData = { $0.credential = nil } },
    .init("another COSE key", "credential_key") {
      let other = SimulatedAuthenticatorData.Credential.coseKey(x963: try P256PrivateKey().publicKey.x963)
      $0.authenticatorData = { $0.credential?.publicKey = other }
    },
    .init("a COSE key for another algorithm", "format") {
      $0.authenticatorData = { $0.credential?.publicKey[4] = 0x38 }
    },
    .init("a truncated COSE key", "format") { $0.authenticatorData = { $0.credential?.publicKey.removeLast() } },
  ]

  private static func alterNonce(
    of alterations: inout AttestationAlterations, _ alter: @escaping @Sendable (inout [UInt8]) -> Void
  ) {
    alterations.leaf = { alter(&$0.extensions[$0.extensions.count - 1].value) }
  }

  @Test(
    "The attestation of a simulated device verifies, in either environment", arguments: SimulatedEnvironment.allCases)
  func verifies(_ environment: SimulatedEnvironment) throws {
    let minted = try Minted(environment: environment)
    let verified = try minted.outcome(of: minted.attestation()).get()
    #expect(verified.key.environment.rawValue == environment.rawValue)
    #expect(verified.key.publicKey == minted.key.publicKey.x963)
    #expect(verified.key.validationCategory == nil && verified.key.bundleVersion == nil)
  }

  @Test("The violated rule refuses the attestation and is reported", arguments: broken)
  func refuses(_ example: BrokenAttestation) throws {
    var minted = try Minted()
    try example.alter(&minted.mint.alterations)
    guard case .failure(let rejection) = try minted.outcome(of: minted.attestation()) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.step == example.step, "\(rejection)")
  }

  @Test("Data without a rule is ignored: other extensions, the leaf's name, flags")
  func ignoresTheRest() throws {
    var minted = try Minted()
    let unknown = try #require(ObjectIdentifier("1.2.840.113635.100.8.99"))
    minted.mint.alterations.leaf = {
      $0.subject = DistinguishedName(.commonName("anything"))
      $0.extensions.insert(CertificateExtension(unknown, value: DER.null), at: 2)
    }
    for flags: UInt8 in [0x00, 0x01, 0x40, 0x80, 0xC0, 0xFF] {
      minted.mint.alterations.authenticatorData = { $0.flags = flags }
      #expect(throws: Never.self) { try minted.outcome(of: minted.attestation()).get() }
    }
  }

  @Test("An app is accepted only in its allowed environments", arguments: SimulatedEnvironment.allCases)
  func keepsEnvironments(_ environment: SimulatedEnvironment) throws {
    let minted = try Minted(environment: environment)
    let own = try #require(AttestEnvironment(rawValue: environment.rawValue))
    for environments: Set<AttestEnvironment> in [[], [.development], [.production], [.development, .production]] {
      let outcome = try minted.outcome(of: minted.attestation(), by: minted.verifier(environments: environments))
      if environments.contains(own) {
        #expect(throws: Never.self) { try outcome.get() }
      } else {
        #expect(throws: AttestationRejection.environmentNotAllowed(own, app: minted.app)) { try outcome.get() }
      }
    }
  }

  @Test("A key is bound to the app of its attestation if several apps are configured")
  func bindsToItsApp() throws {
    let minted = try Minted()
    let other = try #require(AppID("AAABBBCCC1.com.example.app"))
    let verifier = AttestationVerifier(
      apps: [other: [.development], minted.app: [.development]],
      attestationRoots: [minted.authority.attestationRoot.certificate],
      receiptRoots: [minted.authority.receiptRoot.certificate])
    #expect(try minted.outcome(of: minted.attestation(), by: verifier).get().key.appID == minted.app)
  }

  @Test("Without apps or without roots, every attestation is refused")
  func refusesWithoutConfiguration() throws {
    let minted = try Minted()
    let (attestationRoot, receiptRoot) = (
      minted.authority.attestationRoot.certificate, minted.authority.receiptRoot.certificate
    )
    let verifiers = [
      ("rp_id", AttestationVerifier(apps: [:], attestationRoots: [attestationRoot], receiptRoots: [receiptRoot])),
      (
        "certificate_chain",
        AttestationVerifier(apps: [minted.app: [.development]], attestationRoots: [], receiptRoots: [receiptRoot])
      ),
      (
        "receipt_certificate_chain",
        AttestationVerifier(apps: [minted.app: [.development]], attestationRoots: [attestationRoot], receiptRoots: [])
      ),
    ]
    for (step, verifier) in verifiers {
      guard case .failure(let rejection) = try minted.outcome(of: minted.attestation(), by: verifier) else {
        Issue.record("accepted")
        continue
      }
      #expect(rejection.step == step)
    }
  }
}
