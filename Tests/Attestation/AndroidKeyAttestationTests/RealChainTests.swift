import ByteCoding
import Cryptography
import Testing

@testable import AndroidKeyAttestation

@Suite("Chains of real devices", .enabled(if: Vectors.arePresent, Vectors.absence))
struct RealChainTests {
  @Test("The files contain 142 chains, 61 changes and six leaves")
  func areWhole() throws {
    let chains: [RealChain] = try Vectors.read("android-key-attestation.json")
    let cases: [ChangedChain] = try Vectors.read("cases.json")
    let leaves: [RealLeaf] = try Vectors.read("leaves.json")
    #expect((chains.count, cases.count, leaves.count) == (142, 61, 6))
    #expect(Vectors.statusList?.count == 1640)
  }

  @Test("Each chain has its verdict, with exactly the listed reasons", arguments: Vectors.chains)
  func verdict(_ vector: RealChain) throws {
    let codes = try vector.codes(vector.policy)
    #expect(codes == vector.reasons())
    #expect(vector.expect.reasons.isEmpty == (vector.expect.verdict == "accept"))
    // What `trusted` says is independent of what the device says about the key.
    let chainSteps: Set<AndroidAttestationStep> = [
      .format, .nameChaining, .signatures, .root, .authorities, .validity, .revocation, .attestationExtension,
    ]
    let isTrusted = try vector.rejections(vector.policy).allSatisfy { !chainSteps.contains($0.step) }
    #expect(isTrusted == (vector.expect.chain == "trusted"))
  }

  @Test("With the boot keys of GrapheneOS allowed, its devices are accepted")
  func bootKeys() throws {
    let keys = try AndroidBootKeys(Vectors.bytes("boot-keys/grapheneos-attestation.json")).keys
    #expect(keys.count == 21)
    let vectors = Vectors.chains.filter { $0.expect.reasonsWithGrapheneBootKeys != nil }
    #expect(!vectors.isEmpty)
    for vector in vectors {
      var policy = try vector.policy
      policy.allowedBootKeys = keys
      #expect(try vector.codes(policy) == vector.reasons(vector.expect.reasonsWithGrapheneBootKeys))
    }
  }

  @Test("Each changed chain has its verdict", arguments: Vectors.cases)
  func changed(_ changed: ChangedChain) throws {
    let codes = try changed.codes()
    switch changed.expect {
    case "accept": #expect(codes.isEmpty)
    case "refuse": #expect(!codes.isEmpty)
    case "refuse: key_is_not_P-256 alone":
      // This chain of a system app names no signer, so that a policy cannot, either.
      #expect(codes.subtracting(["signer_differs"]) == ["key_is_not_P-256"])
    case "refuse: revoked": #expect(codes.contains("revoked[1]"))
    default: Issue.record("an unknown verdict: \(changed.expect)")
    }
    // The rule that the change is about is among the reasons.
    let change = changed.change
    if change.challenge != nil { #expect(codes.contains("challenge_differs")) }
    if change.flip != nil { #expect(codes == ["signature[0]"]) }
    if change.app?.signatureDigest == String(repeating: "0", count: 64) { #expect(codes == ["signer_differs"]) }
    if change.app?.package == "com.example.other" { #expect(codes == ["package_differs"]) }
    if change.prepend != nil { #expect(codes.contains("attestation_extension[1]")) }
    if change.replace != nil { #expect(codes.contains("signature[0]")) }
    if change.policy?.securityLevel == "StrongBox" { #expect(codes == ["security_level_too_low"]) }
    if changed.case == "two years later" { #expect(codes.contains("expired[1]")) }
    if changed.case == "before the chain was valid" { #expect(codes.contains("not_yet_valid[1]")) }
  }

  @Test("What a device says about its key is decoded", arguments: Vectors.chains)
  func facts(_ vector: RealChain) throws {
    let chain = try AndroidCertificateChain(vector.certificates)
    let value = try #require(chain.leaf.extensionValue(oid: KeyDescription.extensionIdentifier))
    let decoded = try KeyDescription(value)
    #expect(decoded.facts["keyDescription"] == vector.facts.keyDescription)
    #expect(decoded.facts["hardwareEnforced"] == vector.facts.hardwareEnforced)
    #expect(decoded.facts["softwareEnforced"] == vector.facts.softwareEnforced)
    #expect(decoded.softwareEnforced.unknown.isEmpty)
    let unknown = decoded.hardwareEnforced.unknown.map(\.tag)
    #expect(unknown == (vector.name.contains("mldsa") ? [11] : []))
    if vector.facts.provisioning != "other" { #expect(chain.provisioning.rawValue == vector.facts.provisioning) }
  }

  @Test("What single leaves say about their keys is decoded", arguments: Vectors.leaves)
  func leaves(_ leaf: RealLeaf) throws {
    let certificate = try Certificate(der: #require(Base64.decode(leaf.certificate)))
    let value = try #require(certificate.extensionValue(oid: KeyDescription.extensionIdentifier))
    let facts = try KeyDescription(value).facts
    var expected = leaf.keyDescription.members
    #expect(facts["hardwareEnforced"] == expected.removeValue(forKey: "hardwareEnforced"))
    #expect(facts["softwareEnforced"] == expected.removeValue(forKey: "softwareEnforced"))
    #expect(facts["keyDescription"] == .object(expected))
  }

  @Test("A signature of a real device is verified by its attested key")
  func signature() throws {
    let vector = try #require(Vectors.chains.first { $0.signature != nil })
    let (leaf, signature) = (try AndroidCertificateChain(vector.certificates).leaf, try #require(vector.signature))
    let key = try P256PublicKey(spki: leaf.subjectPublicKeyInfo)
    let fixed = try #require(Base64.decode(signature.signature))
    let der = DER.sequence(
      DER.integer(magnitude: Array(fixed.prefix(32))), DER.integer(magnitude: Array(fixed.suffix(32))))
    let message = try #require(Base64.decode(signature.over))
    #expect(key.isValidSignature(der, for: message))
    #expect(!key.isValidSignature(der, for: message + [0]))
  }

  @Test("The pinned keys are those of the five certificates that Google publishes")
  func roots() throws {
    for number in 0..<5 {
      let pem = String(decoding: try Vectors.bytes("roots/google-root-\(number).pem"), as: UTF8.self)
      let root = try #require(try Certificate.certificates(pem: pem).first)
      let expected = number < 4 ? GoogleRoots.rsa : GoogleRoots.keyAttestationCA1
      #expect(expected.spki == root.subjectPublicKeyInfo)
    }
    #expect(GoogleRoots.rsa.kind == .rsa(bits: 4096))
    #expect(GoogleRoots.keyAttestationCA1.kind == .curve(.p384))
  }

  @Test("An accepted chain yields its key, and the explanation agrees with the verdict", arguments: Vectors.chains)
  func explanation(_ vector: RealChain) throws {
    let verifier = AndroidAttestationVerifier(policy: try vector.policy, remembering: sharedSignatures)
    let explanation = verifier.explain(
      try vector.certificates, challenge: try vector.challengeBytes, statusList: Vectors.statusList,
      at: try vector.instant)
    let broken = explanation.steps.filter { $0.outcome == .broken }
    #expect(Set(broken.map(\.name)) == vector.reasons())
    #expect(explanation.holds == vector.reasons().isEmpty)
    #expect(broken.allSatisfy { !$0.detail.isEmpty })
    guard explanation.holds else { return }
    let key = try verifier.verify(
      AndroidCertificateChain(vector.certificates), challenge: vector.challengeBytes, statusList: Vectors.statusList,
      at: vector.instant)
    #expect(key.package == vector.app.package)
    #expect(key.keyID == SHA256.hash(key.publicKey))
    #expect(key.securityLevel >= .trustedEnvironment)
    #expect(key.serialNumbers.count == vector.chain.count)
  }
}

/// Shared by the tests, as by a gate: signatures on P-384 are slow.
let sharedSignatures = VerifiedSignatureCache()

extension RealChain {
  func rejections(
    _ policy: AndroidAppPolicy, statusList: AndroidStatusList? = Vectors.statusList
  ) throws -> [AndroidRuleRejection] {
    try rejectionsOf(
      certificates, policy: policy, challenge: challengeBytes, statusList: statusList, at: instant,
      remembering: sharedSignatures)
  }

  func codes(_ policy: AndroidAppPolicy) throws -> Set<String> { Set(try rejections(policy).map(\.code)) }
}

/// All rules that the chain breaks; none if it is accepted.
func rejectionsOf(
  _ certificates: [[UInt8]], policy: AndroidAppPolicy, roots: [IssuerKey] = GoogleRoots.all, challenge: [UInt8],
  statusList: AndroidStatusList?, at instant: Timestamp,
  remembering signatures: VerifiedSignatureCache = VerifiedSignatureCache()
) -> [AndroidRuleRejection] {
  do throws(AndroidAttestationRejection) {
    _ = try AndroidAttestationVerifier(policy: policy, roots: roots, remembering: signatures).verify(
      AndroidCertificateChain(certificates), challenge: challenge, statusList: statusList, at: instant)
    return []
  } catch {
    return error.rules
  }
}

extension ChangedChain {
  func codes() throws -> Set<String> {
    let vector = try Vectors.chain(named: vector)
    var (certificates, policy) = (try vector.certificates, try vector.policy)
    if let app = change.app {
      policy.package = app.package
      policy.signers = [try #require(Hex.decode(app.signatureDigest))]
    }
    if change.policy?.securityLevel == "StrongBox" { policy.minimumSecurityLevel = .strongBox }
    for index in change.drop ?? [] { certificates.remove(at: index < 0 ? certificates.count + index : index) }
    if let flip = change.flip {
      let index = try #require(flip.first?.number)
      certificates[index][certificates[index].count - 1] ^= 1
    }
    if let prepend = change.prepend { certificates.insert(try Self.certificate(prepend), at: 0) }
    if let replace = change.replace {
      certificates[try #require(replace.first?.number)] = try Self.certificate(Array(replace.dropFirst()))
    }
    if change.reverse == true { certificates.reverse() }
    let rejections = rejectionsOf(
      certificates, policy: policy,
      challenge: try change.challenge.map { try #require(Base64.decode($0)) } ?? vector.challengeBytes,
      statusList: change.status == nil ? Vectors.statusList : nil,
      at: try change.at.map { try #require(Timestamp(rfc3339: $0)) } ?? vector.instant, remembering: sharedSignatures)
    return Set(rejections.map(\.code))
  }

  /// The certificate that `[vector, index]` names.
  private static func certificate(_ place: [JSON]) throws -> [UInt8] {
    let vector = try Vectors.chain(named: #require(place.first?.text))
    return try vector.certificates[#require(place.last?.number)]
  }
}

extension KeyDescription {
  /// The fields as the vectors have them: all of them, and the octet of `deviceLocked`.
  var facts: [String: JSON] {
    var facts = Dictionary(uniqueKeysWithValues: explainedFields.map { ($0.name, JSON($0.value)) })
    for (name, list) in [("hardwareEnforced", hardwareEnforced), ("softwareEnforced", softwareEnforced)] {
      var members = facts[name]?.members ?? [:]
      for tag in list.unknown.map(\.tag) { members["unknown \(tag)"] = nil }
      if let root = list.rootOfTrust {
        var trust = members["rootOfTrust"]?.members ?? [:]
        trust["deviceLockedByte"] = .text(Hex.encode([root.deviceLockedOctet]))
        if root.verifiedBootHash == nil { trust["verifiedBootHash"] = .null }
        members["rootOfTrust"] = .object(trust)
      }
      facts[name] = .object(members)
    }
    return facts
  }
}

extension JSON {
  init(_ value: Explanation.Value) {
    self =
      switch value {
      case .text(let text): .text(text)
      case .number(let number): .number(number)
      case .boolean(let truth): .boolean(truth)
      case .list(let values): .list(values.map { JSON($0) })
      case .instant(let instant): .text(instant.description)
      case .fields(let fields): .object(Dictionary(uniqueKeysWithValues: fields.map { ($0.name, JSON($0.value)) }))
      }
  }
}
