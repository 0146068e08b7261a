internal import AndroidKeyAttestation
internal import ByteCoding
internal import CBOR
internal import Cryptography

// Texts.
extension Inspector {
  /// `nil` for a text that can only be base64.
  mutating func text(
    _ text: PrintableText, beginningWith first: UInt8
  ) throws(InspectionError) -> (Inspection.Kind, [InspectedNode])? {
    switch first {
    case UInt8(ascii: "{"): return try json(text)
    case UInt8(ascii: "["): return (.certificates, try chain(text.bytes))
    default: break
    }
    let trimmed = text.trimmed
    if trimmed.starts(with: "-----BEGIN".utf8) || text.hasBlock { return (.certificates, try chain(text.bytes)) }
    if let fields = fields(in: text) { return (.headers, fields) }
    guard trimmed.count(where: { $0 == UInt8(ascii: ".") }) == 2 else { return nil }
    let parts = token(in: Array(trimmed), depth: 0)
    return (Inspection.Kind(ofToken: parts), parts)
  }

  /// The body of a registration, or headers as an object.
  private mutating func json(_ text: PrintableText) throws(InspectionError) -> (Inspection.Kind, [InspectedNode]) {
    let members = Self.registration.merging(Self.fields) { $1 }
    let parts = object(in: text.bytes, text.bytes.indices, members: members, depth: 0)
    let names = Set(parts.map(\.name))
    if let fault = parts.first, fault.isError {
      throw .unrecognized(offset: fault.offset, reason: fault.value ?? "")
    }
    if names.contains("attestation") || names.contains("chain") { return (.registration, parts) }
    guard names.contains("X-App-Assert-Data") else {
      throw .unrecognized(
        offset: text.bytes.firstIndex(of: UInt8(ascii: "{")) ?? 0,
        reason: "a JSON object without attestation, chain or X-App-Assert-Data")
    }
    return (.headers, parts)
  }

  private static let registration: [String: TextMember] = [
    "keyId": TextMember("what the device calls the key: base64 of the SHA-256 of the public key"),
    "attestation": TextMember("the attestation object", .attestation),
    "nonce": TextMember("the nonce of the challenge, hex; the device attests the SHA-256 of its bytes"),
    "platform": TextMember("ios, which is the default, or android"),
    "chain": TextMember("the certificates of an Android device, leaf first", .chain),
    "publicKey": TextMember("the public key, base64 of 65 bytes"),
    "clientDataHash": TextMember("the SHA-256 of the nonce's bytes"),
    "counter": TextMember("the counter of the assertion"),
  ]

  private static let fields: [String: TextMember] = [
    "X-App-Assert-KeyId": TextMember("the key identifier, base64"),
    "X-App-Assert-Data": TextMember("the assertion, or the signature of an Android device", .proof),
    "X-App-Assert-Nonce": TextMember("the nonce of the challenge, hex"),
    "X-Attest-Assertion": TextMember("the identity that the gate sends to its upstream", .token),
    "DPoP": TextMember("the proof that the sender has the key of its token", .token),
    "Authorization": TextMember("the access token", .token),
  ]

  private static let longestField = 32

  /// By their names in small letters.
  private static let fieldsByName: [[UInt8]: (name: String, member: TextMember)] = Dictionary(
    uniqueKeysWithValues: fields.map { ($0.key.utf8.map(\.lowercasedASCII), ($0.key, $0.value)) })

  /// The known fields among the lines; `nil` if there is none.
  private mutating func fields(in text: PrintableText) -> [InspectedNode]? {
    var nodes: [InspectedNode] = []
    var missing = Self.fieldsByName
    for line in text.bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
      guard let colon = line.prefix(Self.longestField + 1).firstIndex(of: UInt8(ascii: ":")) else { continue }
      let name = line[..<colon].map(\.lowercasedASCII)
      // Of a field that is there twice the first one is shown.
      guard let known = missing.removeValue(forKey: name) else { continue }
      var value = line[(colon + 1)...].drop { JSONScanner.isSpace($0) }
      // The scheme, DPoP or Bearer.
      if known.name == "Authorization", let space = value.firstIndex(of: 0x20) { value = value[(space + 1)...] }
      var node = InspectedNode(
        offset: line.startIndex, header: value.startIndex - line.startIndex, length: value.count, name: known.name,
        type: "field", meaning: known.member.meaning)
      read(String(decoding: value, as: UTF8.self), into: &node, as: known.member.form, depth: 1)
      nodes.append(node)
    }
    return nodes.isEmpty ? nil : nodes
  }

  /// The certificates of a chain in PEM or JSON. Offsets count in each.
  private mutating func chain(_ text: [UInt8]) throws(InspectionError) -> [InspectedNode] {
    let certificates: [[UInt8]]
    do throws(AndroidAttestationRejection) {
      certificates = try AndroidCertificateChain.encodings(in: text)
    } catch {
      throw .unrecognized(offset: 0, reason: error.description)
    }
    var nodes: [InspectedNode] = []
    for (index, der) in certificates.enumerated() {
      var node = InspectedNode(
        offset: 0, length: der.count, name: "certificate \(index)",
        meaning: "offsets below count from the first byte of its DER")
      node.children = parts(of: .der(.certificate), in: der, der.indices, depth: 1)
      nodes.append(node)
    }
    return nodes
  }
}

// Bytes.
extension Inspector {
  mutating func binary(_ bytes: [UInt8]) throws(InspectionError) -> (Inspection.Kind, [InspectedNode]) {
    if bytes.first == 0x30 { return try der(bytes) }
    let kind = Self.kind(ofCBOR: bytes)
    let shape: CBORShape =
      switch kind {
      case .attestation: .attestation
      case .assertion: .assertion
      default: .any
      }
    let nodes = items(in: bytes, bytes.indices, as: shape, depth: 0)
    if let fault = nodes.first, fault.isError {
      throw .unrecognized(offset: fault.offset, reason: "neither CBOR (\(fault.value ?? "")) nor DER")
    }
    return (kind, nodes)
  }

  /// By the first key of a map: both structures have texts.
  private static func kind(ofCBOR bytes: [UInt8]) -> Inspection.Kind {
    var reader = CBORItemReader(bytes, range: bytes.indices)
    guard let map = try? reader.next(), let key = try? reader.next(), case .text(let range) = key.content else {
      return .cbor
    }
    switch map.content {
    case .map, .indefinite(majorType: 5): break
    default: return .cbor
    }
    let name = bytes[range]
    if ["fmt", "attStmt", "authData"].contains(where: { $0.utf8.elementsEqual(name) }) { return .attestation }
    return ["signature", "authenticatorData"].contains { $0.utf8.elementsEqual(name) } ? .assertion : .cbor
  }

  private mutating func der(_ bytes: [UInt8]) throws(InspectionError) -> (Inspection.Kind, [InspectedNode]) {
    switch Self.content(of: bytes) {
    case .privateKey: throw .privateKey
    case .receipt: return (.receipt, parts(of: .receipt, in: bytes, bytes.indices, depth: 0))
    case .certificates:
      return (
        .certificates,
        elements(in: bytes, bytes.indices, rules: .der, as: [.certificate], repeats: true, depth: 0)
      )
    case .signature: return (.signature, parts(of: .der(.signature), in: bytes, bytes.indices, depth: 0))
    case .other: return (.der, elements(in: bytes, bytes.indices, rules: .ber, as: [], depth: 0))
    }
  }

  private enum Content { case privateKey, receipt, certificates, signature, other }

  /// What a SEQUENCE is, by its first elements.
  private static func content(of bytes: [UInt8]) -> Content {
    var file = ASN1Reader(bytes: bytes, range: bytes.indices, rules: .ber)
    guard var fields = try? file.enter(.sequence), let first = try? fields.next() else { return .other }
    switch first.tag {
    case .objectIdentifier: return fields.nextTag == .context(0) ? .receipt : .other
    case .sequence: return .certificates
    case .integer: break
    default: return .other
    }
    switch fields.nextTag {
    // PKCS #8 (RFC 5208) and ECPrivateKey (RFC 5915) begin with a version.
    case .octetString: return .privateKey
    case .sequence:
      _ = try? fields.next()
      return fields.nextTag == .octetString ? .privateKey : .other
    case .integer:
      _ = try? fields.next()
      // PKCS #1 and DSA have more numbers.
      return fields.isAtEnd ? .signature : .privateKey
    default: return .other
    }
  }
}
