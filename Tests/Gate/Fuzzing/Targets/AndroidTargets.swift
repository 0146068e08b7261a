import ByteCoding
import Foundation
import SimulatedDevice

@testable import AndroidKeyAttestation
@testable import Cryptography

extension FuzzTarget {
  static let androidKeyDescription = FuzzTarget(
    name: "android-key-description", words: ["\u{1}\u{1}", "\u{2}\u{1}", "0\u{0}"],
    seeds: AndroidInvariants.descriptions, accepts: AndroidInvariants.checkDescription)

  static let androidChain = FuzzTarget(
    name: "android-chain", longest: 8192, words: ["Google LLC", "Droid CA2"], seeds: AndroidInvariants.chains,
    accepts: AndroidInvariants.checkChain)

  static let androidStatusList = FuzzTarget(
    name: "android-status-list", words: ["\"entries\"", "\"status\"", "\"REVOKED\"", "\"reason\""],
    seeds: {
      [
        Array(#"{"entries":{"a0":{"status":"REVOKED","reason":"KEY_COMPROMISE"},"1":{"status":"SUSPENDED"}}}"#.utf8),
        Array(#"{"entries":{}}"#.utf8),
      ]
    }, accepts: AndroidInvariants.checkStatusList)
}

/// Descriptions have one encoding, except for what genuine devices write otherwise. A chain that leads to the minted
/// root was minted.
enum AndroidInvariants {
  /// The tags that the rules read, in one list or the other.
  private static let judged: Set<AuthorizationTag> = [
    .purpose, .origin, .rootOfTrust, .osPatchLevel, .attestationApplicationId,
  ]

  static func checkDescription(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let description = try? KeyDescription(input) else { return false }
    try require((try? KeyDescription(input + [0])) == nil, "no byte may follow a key description")
    try require((try? KeyDescription(input.dropLast())) == nil, "no prefix of a key description is one")
    try require(description.explainedFields.count == 3, "a key description has three groups of fields")
    for list in [description.softwareEnforced, description.hardwareEnforced] {
      let unread = list.unknown.compactMap { AuthorizationTag(rawValue: $0.tag) }
      try require(
        unread.allSatisfy { list[$0] == nil && !judged.contains($0) },
        "a tag that a rule reads is never kept as unknown")
      let root = list.rootOfTrust
      try require(root?.deviceLockedOctet != 0 || root?.isDeviceLocked == false, "0 is not locked")
    }
    return true
  }

  /// The input is a row of certificates, one after the other.
  static func checkChain(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    var explained: [[UInt8]] = []
    var reader = ASN1Reader(input)
    while !reader.isAtEnd, let element = try? reader.next() { explained.append(Array(element.encoding)) }
    let explanation = verifier.explain(
      explained, challenge: AndroidMint.challenge, statusList: nil, at: AndroidMint.instant)
    guard let chain = try? AndroidCertificateChain(explained) else {
      try require(!explanation.holds, "a chain that cannot be parsed does not hold")
      return false
    }
    let key = try? verifier.verify(
      chain, challenge: AndroidMint.challenge, statusList: nil, at: AndroidMint.instant)
    try require((key != nil) == explanation.holds, "verifier and explanation agree")
    guard let key else { return false }
    // A key on P-256 ends with its point.
    try require(
      keys.contains { $0.suffix(key.publicKey.count).elementsEqual(key.publicKey) }, "a key that is proven was minted")
    try require(
      chain.certificates.dropFirst().filter { $0.extensionValue(oid: KeyDescription.extensionIdentifier) != nil }
        .isEmpty, "only the leaf attests")
    return true
  }

  static func checkStatusList(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let list = try? AndroidStatusList(input) else { return false }
    try require(list.count > 0, "an accepted list has entries")
    _ = list.reason(forSerial: Array(input.prefix(20)))
    return true
  }

  /// Real descriptions, if they are next to the project, and minted ones.
  static func descriptions() throws -> [[UInt8]] {
    let minted = try kept.map { chain in
      let leaf = try Certificate(der: chain[0])
      return leaf.extensionValue(oid: KeyDescription.extensionIdentifier) ?? []
    }
    let real = realChains().compactMap { chain in
      chain.first.flatMap { try? Certificate(der: $0) }?.extensionValue(oid: KeyDescription.extensionIdentifier)
    }
    return minted + real.filter { $0.count <= 4096 }
  }

  static func chains() throws -> [[UInt8]] {
    kept.map { Array($0.joined()) } + realChains().map { Array($0.joined()) }.filter { $0.count <= 8192 }
  }

  private static func realChains() -> [[[UInt8]]] {
    struct Vector: Decodable { let chain: [String] }
    let folder = Standard.environment("SALLYPORT_VECTORS") ?? "../shared/vectors"
    let file = URL(fileURLWithPath: folder + "/android/android-key-attestation.json")
    guard let data = try? Data(contentsOf: file), let vectors = try? JSONDecoder().decode([Vector].self, from: data)
    else { return [] }
    return vectors.map { $0.chain.compactMap { Base64.decode($0) } }
  }

  /// Minted chains, and the root that they lead to. Kept in the folder of the fixtures, so that an input has the same
  /// result in every run.
  private static let kept: [[[UInt8]]] = {
    do {
      let file = try Fixtures.folder("fixtures").appendingPathComponent("android-chains.json")
      if let data = try? Data(contentsOf: file) {
        return try JSONDecoder().decode([[String]].self, from: data).map { $0.compactMap { Base64.decode($0) } }
      }
      let chains = [try AndroidMint.factory().chain(), try AndroidMint.remote().chain()]
      try JSONEncoder().encode(chains.map { $0.map { Base64.encode($0) } }).write(to: file, options: .atomic)
      return chains
    } catch {
      Standard.error("error: cannot make the Android fixtures: \(error)")
      exit(70)
    }
  }()

  private static let keys = Set(kept.compactMap { try? Certificate(der: $0[0]).subjectPublicKeyInfo })
  private static let verifier = AndroidAttestationVerifier(
    policy: AndroidAppPolicy(package: AndroidMint.package, signers: [AndroidMint.signer]),
    roots: kept.compactMap { chain in
      chain.last.flatMap { try? Certificate(der: $0) }.flatMap { try? IssuerKey(spki: $0.subjectPublicKeyInfo) }
    })
}
