import ByteCoding
import CBOR
import Cryptography
import Inspection
import SimulatedDevice
import TestSupport
import Testing

/// Objects of one simulated device, and their trees.
private struct Samples {
  static let appID = "SALLYPORT1.com.example.app"
  static let instant = Timestamp(seconds: 1_800_000_000)
  static let hash = SHA256.hash([1, 2, 3])
  static let authority = Result { try TestAuthority(appID: appID, at: instant) }

  let authority: TestAuthority
  let key: P256PrivateKey
  let app: SimulatedApp

  init(claims: AppClaims? = AppClaims()) throws {
    authority = try Self.authority.get()
    key = try P256PrivateKey()
    app = SimulatedApp(appID: Self.appID, claims: claims)
  }

  func attestation() throws -> [UInt8] {
    try AttestationMint(authority: authority, app: app)
      .attestation(of: key, clientDataHash: Self.hash, at: Self.instant)
  }

  func assertion(counter: UInt32 = 7) throws -> [UInt8] {
    try AssertionMint(app: app).assertion(by: key, clientDataHash: Self.hash, signCount: counter)
  }

  func riskReceipt(metric: UInt32) throws -> [UInt8] {
    try AttestationMint(authority: authority, app: app).riskReceipt(of: key, metric: metric, at: Self.instant)
  }

  func chain() throws -> [[UInt8]] {
    let android = try #require(authority.android)
    return try AndroidAttestationMint(
      authority: android, profile: AndroidProfile(app: AndroidApp(appID: Self.appID))
    ).chain(of: key, challenge: Self.hash, at: Self.instant)
  }
}

extension Inspection {
  /// All parts, from front to back.
  fileprivate var nodes: [InspectedNode] { parts.flatMap(\.flattened).map(\.node) }

  /// The only part, or the first one, called `name`.
  fileprivate func node(_ name: String) throws -> InspectedNode {
    try #require(nodes.first { $0.name == name }, "\(name): \(Set(nodes.map(\.name)).sorted())")
  }
}

@Suite("Inspection")
struct InspectionTests {
  @Test func `an attestation shows app, environment, key, nonce and receipt at their places`() throws {
    let samples = try Samples()
    let object = try samples.attestation()
    let inspection = try Inspection(object)
    #expect(inspection.kind == .attestation && inspection.faults.isEmpty && inspection.size == object.count)
    func bytes(_ name: String) throws -> [UInt8] {
      let node = try inspection.node(name)
      return Array(object[(node.offset + node.header)...].prefix(node.length))
    }
    #expect(try bytes("rpIdHash") == SHA256.hash(Array(Samples.appID.utf8)))
    #expect(try bytes("signCount") == [0, 0, 0, 0])
    #expect(try bytes("aaguid") == Array("appattestdevelop".utf8))
    #expect(try bytes("credentialId") == SHA256.hash(samples.key.publicKey.x963))
    #expect(try [UInt8(4)] + bytes("x (-2)") + bytes("y (-3)") == samples.key.publicKey.x963)
    let authData = try bytes("authData")
    #expect(try bytes("nonce") == SHA256.hash(authData + Samples.hash))
    #expect(try inspection.node("apple_bundle_version_01").value == "\"1\"")
    #expect(try inspection.node("appID").value == "\"\(Samples.appID)\"")
    #expect(try inspection.node("environment").value == "\"sandbox\"")
    #expect(try inspection.node("issuer").value?.contains("Simulated App Attestation CA 1") == true)
    #expect(inspection.nodes.filter { $0.name == "Certificate" }.count == 6)
    for name in ["rpIdHash", "signCount", "nonce", "leaf", "receipt", "environment", "validity"] {
      #expect(try inspection.node(name).meaning != nil, "\(name)")
    }
  }

  @Test func `parts are within the part that has them, in their order`() throws {
    let samples = try Samples()
    for object in try [samples.attestation(), samples.assertion(), samples.chain()[0]] {
      func check(_ nodes: [InspectedNode], in range: Range<Int>) {
        var last = range.lowerBound
        for node in nodes {
          #expect(node.offset >= last && node.offset + node.header + node.length <= range.upperBound, "\(node.name)")
          last = node.offset + node.header + node.length
          check(node.children, in: node.offset..<last)
        }
      }
      check(try Inspection(object).parts, in: 0..<object.count)
    }
  }

  @Test func `an assertion shows signature and counter, and no key where the flag promises one`() throws {
    let inspection = try Inspection(try Samples(claims: nil).assertion(counter: 258))
    #expect(inspection.kind == .assertion && inspection.faults.isEmpty)
    #expect(try inspection.node("signCount").value == "258")
    #expect(try inspection.node("flags").value == "0x40")
    #expect(!inspection.nodes.contains { $0.name == "aaguid" })
    #expect(try inspection.node("r").header == 2)
  }

  @Test func `an aaguid is a name only if nothing but zero bytes follows it`() throws {
    var object = try Samples().attestation()
    let offset = try Inspection(object).node("aaguid").offset
    let zeros = [UInt8](repeating: 0, count: 16)
    for (aaguid, value) in [
      (Array("appattest".utf8) + zeros.prefix(7), "\"appattest\""),
      (Array("appattest".utf8) + [0] + Array("evelop".utf8), "617070617474657374006576656c6f70"),
      (zeros, String(repeating: "0", count: 32)),
    ] {
      object.replaceSubrange(offset..<offset + 16, with: aaguid)
      #expect(try Inspection(object).node("aaguid").value == value)
    }
  }

  @Test func `a receipt is recognized alone, in one segment or in several`() throws {
    let object = try Samples().attestation()
    let node = try Inspection(object).node("receipt")
    let receipt = Array(object[(node.offset + node.header)...].prefix(node.length))
    let inspection = try Inspection(receipt)
    #expect(inspection.kind == .receipt && inspection.faults.isEmpty)
    #expect(try inspection.node("type").value == "2")
    // The same payload in two segments.
    let segment = try inspection.node("segment")
    let content = receipt[(segment.offset + segment.header)...].prefix(segment.length)
    var split: [UInt8] = []
    for part in [content.prefix(300), content.dropFirst(300)] {
      split += [0x04, 0x82, UInt8(part.count >> 8), UInt8(part.count & 0xFF)]
      split += part
    }
    let end = segment.offset + segment.header + segment.length
    let segmented = try Inspection(receipt.prefix(segment.offset) + split + receipt.suffix(from: end))
    #expect(segmented.kind == .receipt && segmented.faults.isEmpty)
    #expect(segmented.nodes.filter { $0.name == "segment" }.count == 2)
    #expect(try segmented.node("appID").value == "\"\(Samples.appID)\"")
    #expect(try segmented.node("segments joined").meaning?.contains("offsets below") == true)
  }

  @Test func `a newer receipt shows its metric and its not-before at their places`() throws {
    let receipt = try Samples().riskReceipt(metric: 1234)
    let inspection = try Inspection(receipt)
    #expect(inspection.kind == .receipt && inspection.faults.isEmpty)
    let metric = try inspection.node("riskMetric")
    #expect(metric.value == "\"1234\"" && metric.meaning?.contains("how many keys") == true)
    let notBefore = try inspection.node("renewableFrom")
    #expect(notBefore.value == "\"2027-01-16T08:00:00.000Z\"" && notBefore.meaning != nil)
  }

  @Test func `a chain of Android shows what the device says about the key`() throws {
    let chain = try Samples().chain()
    let pem = try chain.map { try Certificate(der: $0).pem }.joined()
    let array = JSONText.encoding(chain.map { Base64.encode($0) })
    // As `openssl s_client -showcerts` and some editors write it.
    let withNames = Array("subject=CN = a phone\nissuer=CN = a.b.c: d\n\(pem)".utf8)
    let contents: [[UInt8]] = [
      Array(pem.utf8), withNames, [0xEF, 0xBB, 0xBF] + Array(pem.utf8), Array(array.utf8), chain.flatMap(\.self),
    ]
    for content in contents {
      let inspection = try Inspection(content)
      #expect(inspection.kind == .certificates && inspection.faults.isEmpty)
      #expect(try inspection.node("attestationChallenge").value == Hex.encode(Samples.hash))
      #expect(try inspection.node("keyMintSecurityLevel").value == "1 (TrustedEnvironment)")
      #expect(try inspection.node("packageName").value == "\"com.example.app\"")
      #expect(try inspection.node("osPatchLevel").value == "202605")
      #expect(try inspection.node("verifiedBootState").value == "0 (Verified)")
      #expect(inspection.nodes.filter { $0.name == "Certificate" }.count == chain.count)
    }
  }

  @Test(arguments: [
    ("JWT", #"{"method":"app-attest","sid":"1","exp":1800000000}"#, Inspection.Kind.identity),
    ("at+jwt", #"{"cnf":{"jkt":"abc"},"exp":1800000000}"#, .token),
    ("dpop+jwt", #"{"htm":"GET","exp":1800000000}"#, .proof), ("JWT", #"{"exp":1800000000}"#, .jwt),
  ])
  func `a token is recognized by its type, and its times have dates`(
    type: String, payload: String, kind: Inspection.Kind
  ) throws {
    let header = #"{"typ":"\#(type)","alg":"ES256","jwk":{"kty":"EC","x":"AA","d":"c2VjcmV0"}}"#
    let text = [Array(header.utf8), Array(payload.utf8), [1, 2, 3]].map { Base64URL.encode($0) }.joined(separator: ".")
    let inspection = try Inspection(Array((text + "\n").utf8))
    #expect(inspection.kind == kind && inspection.faults.isEmpty)
    #expect(try inspection.node("exp").value == "1800000000 (2027-01-15T08:00:00Z)")
    #expect(try inspection.node("alg").offset == Array(header.utf8).firstRange(of: "\"ES256".utf8)?.lowerBound)
    #expect(try inspection.node("d").value == "a private key, not shown")
    #expect(!inspection.nodes.contains { $0.value?.contains("c2VjcmV0") == true })
    #expect(try inspection.node("signature").value == "010203")
  }

  @Test func `every claim of an identity has a meaning, and its times have dates`() throws {
    // Those that the document Identity.md names.
    let names = [
      "iss", "aud", "route", "sub", "jti", "iat", "exp", "app", "env", "method", "htm", "target", "counter",
      "security_level", "boot_state", "patch_level", "provisioning", "category", "risk", "risk_at", "sid", "client_ip",
      "cnf", "subject",
    ]
    let payload = "{" + names.map { #""\#($0)":1800000000"# }.joined(separator: ",") + "}"
    let text = [Array(#"{"typ":"JWT"}"#.utf8), Array(payload.utf8), [1]].map { Base64URL.encode($0) }
    let inspection = try Inspection(Array(text.joined(separator: ".").utf8))
    #expect(inspection.faults.isEmpty)
    for name in names { #expect(try inspection.node(name).meaning != nil, "\(name)") }
    for name in ["iat", "exp", "risk_at"] {
      #expect(try inspection.node(name).value == "1800000000 (2027-01-15T08:00:00Z)", "\(name)")
    }
  }

  @Test func `a registration, headers and base64 show the objects in them`() throws {
    let samples = try Samples()
    let (object, assertion) = (Base64.encode(try samples.attestation()), Base64.encode(try samples.assertion()))
    let body = try Inspection(Array(#"{"keyId":"AA==","attestation":"\#(object)","nonce":"00"}"#.utf8))
    #expect(body.kind == .registration && body.faults.isEmpty)
    #expect(try body.node("aaguid").value == "\"appattestdevelop\"")
    let lines = "x-app-assert-keyid: AA==\r\nX-App-Assert-Data: \(assertion)\r\nX-App-Assert-Nonce: 00\r\nOther: 1\r\n"
    let json = #"{"X-App-Assert-Data":"\#(assertion)","counter":7}"#
    for text in [lines, json] {
      let headers = try Inspection(Array(text.utf8))
      #expect(headers.kind == .headers && headers.faults.isEmpty)
      #expect(try headers.node("signCount").value == "7")
    }
    let armored = try Inspection(Array((object.prefix(100) + "\n" + object.dropFirst(100)).utf8))
    #expect(armored.kind == .attestation && armored.isArmored && armored.faults.isEmpty)
    let chain = JSONText.encoding(try samples.chain().map { Base64.encode($0) })
    let android = try Inspection(Array(#"{"platform":"android","chain":\#(chain),"nonce":"00"}"#.utf8))
    #expect(android.kind == .registration && android.faults.isEmpty)
    #expect(try android.node("packageName").value == "\"com.example.app\"")
  }
}

@Suite("Inspection of what is broken")
struct BrokenInspectionTests {
  @Test func `CBOR nested 10,000 deep ends at the limit, whose offset is named`() throws {
    let inspection = try Inspection([UInt8](repeating: 0x81, count: 10_000))
    #expect(
      inspection.faults == [
        .init(offset: 64, part: "error", reason: "nested deeper than 64 levels: the rest is not shown")
      ])
    for head in [0xA1, 0x9F, 0xC1, 0xBF] as [UInt8] {
      let faults = try Inspection([UInt8](repeating: head, count: 10_000)).faults
      #expect(faults.contains { (1...64).contains($0.offset) && $0.reason.contains("64 levels") }, "\(head)")
    }
  }

  @Test func `more parts than the limit are not shown, and their place is named`() throws {
    let count = Inspection.maximumSize - 5
    let array = [0x9A, UInt8(count >> 24), UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
    let inspection = try Inspection(array + [UInt8](repeating: 1, count: count))
    #expect(inspection.parts.flatMap(\.flattened).count <= 10_001)
    #expect(inspection.faults.map(\.reason) == ["more than 10000 parts: the rest is not shown"])
    #expect(inspection.faults.first?.offset == 10_004)
    // The same in DER, where each NULL is a part.
    let nulls = (0..<0x07_FFF8).flatMap { _ in [0x05, 0x00] as [UInt8] }
    let der = try Inspection([0x30, 0x83, 0x0F, 0xFF, 0xF0] + nulls)
    #expect(der.faults.map(\.reason) == ["more than 10000 parts: the rest is not shown"])
  }

  @Test func `content that is too long, empty or a private key is not looked at`() throws {
    #expect(throws: InspectionError.tooLong) {
      try Inspection([UInt8](repeating: 0xA0, count: Inspection.maximumSize + 1))
    }
    #expect(throws: Never.self) { try Inspection([UInt8](repeating: 0xA0, count: Inspection.maximumSize)) }
    for content in ["", " \n"] { #expect(throws: InspectionError.empty) { try Inspection(Array(content.utf8)) } }
    let pem = try P256PrivateKey().pkcs8PEM
    let base64 = pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
    let json = #"{"privateKeyPEM":\#(JSONText.quote(pem))}"#
    for content in [pem, base64, json] {
      #expect(throws: InspectionError.privateKey) { try Inspection(Array(content.utf8)) }
    }
    let pkcs8 = try #require(Base64.decode(base64))
    #expect(throws: InspectionError.privateKey) { try Inspection(pkcs8) }
    // ECPrivateKey (RFC 5915): a version and the private key.
    #expect(throws: InspectionError.privateKey) {
      try Inspection([0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20] + [UInt8](repeating: 7, count: 32))
    }
    // A signature has two numbers, and is none.
    #expect(try Inspection([0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x02]).kind == .signature)
  }

  @Test func `a tag of COSE is shown with its content`() throws {
    // COSE_Sign1 (RFC 9052 section 4.2): tag 18 of an array.
    let inspection = try Inspection([0xD2, 0x84, 0x40, 0xA0, 0x40, 0x40])
    #expect(inspection.kind == .cbor && inspection.faults.isEmpty)
    #expect(inspection.parts.flatMap(\.flattened).count >= 6)
  }

  @Test func `the private part of a COSE key is not shown`() throws {
    let key: CBORMap = [1: 2, -1: 1, -2: .bytes([1]), -4: .bytes(Array("hidden!!".utf8))]
    let inspection = try Inspection(CBORValue.map(key).encoded)
    let values = inspection.parts.flatMap(\.flattened).compactMap(\.node.value)
    #expect(values.contains("a private key, not shown"))
    #expect(!values.contains { $0.contains(Hex.encode(Array("hidden!!".utf8))) })
  }

  @Test(
    "The private part of an attested key is not shown in other words: a tag, an array, a map, chunks or broken ones",
    arguments: [
      ([0x48], [], true), ([0xC2, 0x48], [], true), ([0x81, 0x48], [], true), ([0xA1, 0x01, 0x48], [], true),
      ([0x5F, 0x48], [0xFF], true), ([0x7F, 0x68], [0xFF], true), ([0x5F, 0x48], [], false),
    ] as [([UInt8], [UInt8], Bool)])
  func privatePart(before: [UInt8], after: [UInt8], isWhole: Bool) throws {
    let hidden = Array("hidden!!".utf8)
    // Fields of fixed size, a name of one byte and a key with its private part alone.
    var data = [UInt8](repeating: 0, count: 32 + 1 + 4 + 16)
    data += [0, 1, 7, 0xA1, 0x23]
    data += before + hidden + after
    let object: CBORMap = ["fmt": "apple-appattest", "attStmt": .map([:]), "authData": .bytes(data)]
    let inspection = try Inspection(CBORValue.map(object).encoded)
    let values = inspection.parts.flatMap(\.flattened).compactMap(\.node.value)
    #expect(values.contains("a private key, not shown"))
    #expect(!values.contains { $0.contains(Hex.encode(hidden)) || $0.contains("hidden") })
    #expect(isWhole || inspection.parts.flatMap(\.flattened).contains { $0.node.name == "error" })
  }

  @Test(arguments: [
    ([0xFE, 0x01], 0, "neither CBOR"), ([0x1C], 0, "neither CBOR"), (Array("hello, world".utf8), 5, "no base64"),
    (Array("{\"a\":1}".utf8), 0, "a JSON object without"), (Array("  {\"a\":1".utf8), 0, "not one JSON object"),
    (Array("abcde".utf8), 0, "base64 that is cut"), (Array("[1]".utf8), 0, "JSON array of strings"),
    (Array("-----BEGIN CERTIFICATE-----\n".utf8), 0, "PEM"),
  ])
  func `garbage is refused with the place of its first byte`(
    content: [UInt8], offset: Int, reason: String
  ) throws {
    let error = #expect(throws: InspectionError.self) { try Inspection(content) }
    guard case .unrecognized(let found, let text) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(found == offset && text.contains(reason), "\(found) \(text)")
  }

  @Test func `what the strict decoder refuses is shown and named`() throws {
    let cases: [(bytes: [UInt8], offset: Int, reason: String)] = [
      ([0xA1, 0x18, 0x01, 0x02], 3, "the key at byte 1: not in its shortest form"),
      ([0xA2, 0x01, 0x02, 0x01, 0x03], 4, "the key at byte 3 is in the map twice"),
      ([0xBF, 0x01, 0x02, 0xFF], 0, "an indefinite length, which no verifier here accepts"),
      ([0x81, 0x01, 0x02], 2, "further bytes after the data item: 1"), ([0x61, 0xFF], 0, "a text that is not UTF-8"),
      ([0x83, 0x01, 0x02], 3, "CBOR ends inside of the data item at byte 3"),
      ([0x30, 0x03, 0x06, 0x01], 0, "an element is longer than what is there"),
    ]
    for (bytes, offset, reason) in cases {
      let inspection = try Inspection(bytes)
      #expect(inspection.faults == [.init(offset: offset, part: inspection.faults.first?.part ?? "", reason: reason)])
    }
  }

  @Test func `the length of an item without a count leaves out its end mark, as in DER`() throws {
    for (bytes, length) in [
      ([0xBF, 0x01, 0x02, 0xFF], 2), ([0x9F, 0xFF], 0), ([0x5F, 0x41, 0x07, 0xFF], 2),
      ([0x9F, 0x9F, 0x01, 0xFF, 0xFF], 3), ([0x9F, 0x01], 1), ([0x30, 0x80, 0x05, 0x00, 0x00, 0x00], 2),
    ] as [([UInt8], Int)] {
      #expect(try Inspection(bytes).parts.first?.length == length, "\(bytes)")
    }
  }

  @Test func `a number of JSON with many digits is shown by its beginning`() throws {
    for (digits, shown) in [(120, 120), (121, 121), (100_000, 121)] {
      let number = String(repeating: "7", count: digits)
      let inspection = try Inspection(Array(#"{"attestation":"oA==","counter":\#(number)}"#.utf8))
      let value = try inspection.node("counter").value
      #expect(value?.count == shown && value?.hasSuffix("…") == (digits > 120), "\(digits)")
    }
  }

  @Test func `an object that ends anywhere, or has one other byte, is read within its bounds`() throws {
    let samples = try Samples()
    for object in try [samples.attestation(), samples.assertion(), samples.chain()[0]] {
      for count in stride(from: 1, to: object.count, by: object.count / 150 + 1) {
        if let inspection = try? Inspection(Array(object.prefix(count))) {
          #expect(!inspection.faults.isEmpty, "\(count)")
          #expect(inspection.faults.allSatisfy { $0.offset <= count })
        }
      }
      var generator = SeededGenerator(seed: 43)
      for _ in 0..<500 {
        var changed = object
        changed[Int.random(in: object.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        guard let inspection = try? Inspection(changed) else { continue }
        #expect(inspection.parts.flatMap(\.flattened).count <= 10_001)
      }
    }
  }

  @Test func `random bytes are read without end marks, traps and growth`() throws {
    var generator = SeededGenerator(seed: 44)
    for first in 0...255 as ClosedRange<UInt8> {
      for count in [1, 2, 7, 64, 1024] {
        let bytes = [first] + (1..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        guard let inspection = try? Inspection(bytes) else { continue }
        #expect(inspection.parts.flatMap(\.flattened).count <= 10_001)
      }
    }
  }
}
