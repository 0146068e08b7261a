internal import AppAttest
internal import ByteCoding

extension Inspector {
  /// The fields of authenticator data (WebAuthn section 6.1). They have fixed places; the flags do not decide what
  /// follows, because Apple sets them independently of the content.
  ///
  /// - Parameter ofAttestation: Whether the attested key follows the counter.
  mutating func authenticatorData(
    in bytes: [UInt8], _ range: Range<Int>, ofAttestation: Bool, depth: Int
  ) -> [InspectedNode] {
    var fields = FixedFields(bytes: bytes, range: range)
    fields.take(32, "rpIdHash", "SHA-256 of the app ID, TEAMID.bundle.identifier") { ValueText.hex($0) }
    fields.take(1, "flags", "0x40: a key follows, also set where none does; 0x80: extensions follow") {
      "0x" + Hex.encode($0)
    }
    fields.take(
      4, "signCount",
      ofAttestation
        ? "the counter: 0 in an attestation" : "the counter: how often the key has signed, this time included"
    ) { "\($0.reduce(0) { $0 << 8 | UInt64($1) })" }
    if ofAttestation {
      fields.take(16, "aaguid", "the environment: appattestdevelop, or appattest and seven zero bytes") { bytes in
        // Only zero bytes may follow a name. An aaguid with other bytes is refused, and shown in full.
        let text = bytes.prefix { $0 != 0 }
        let isText = !text.isEmpty && text.allSatisfy { (0x20..<0x7F).contains($0) }
        return isText && bytes[text.endIndex...].allSatisfy { $0 == 0 } ? ValueText.text(text) : ValueText.hex(bytes)
      }
      let count = fields.take(2, "credentialIdLength", "the size of the credential's name: 32") {
        "\($0.reduce(0) { $0 << 8 | Int($1) })"
      }
      let size = count.reduce(0) { $0 << 8 | Int($1) }
      fields.take(size, "credentialId", "the key identifier: SHA-256 of the public key") { Base64.encode($0) }
      // The key has a fixed size. Without it its end is that of the data item.
      if !fields.isBroken {
        let end = min(fields.offset + Self.keySize, range.upperBound)
        fields.nodes += items(
          in: bytes, fields.offset..<end, named: "credentialPublicKey",
          meaning: "the attested key as COSE key (RFC 9053), 77 bytes", as: .publicKey, depth: depth)
        fields.offset = end
      }
    }
    if !fields.isBroken, fields.offset < range.upperBound {
      fields.nodes += items(
        in: bytes, fields.offset..<range.upperBound, named: "extensions",
        meaning: "what iOS 27 and later say about the app", as: .extensions, depth: depth)
    }
    return fields.nodes
  }

  private static let keySize = 77
}

/// Fields of fixed size, one after another.
private struct FixedFields {
  let bytes: [UInt8]
  var offset: Int
  private let end: Int
  var nodes: [InspectedNode] = []
  private(set) var isBroken = false

  init(bytes: [UInt8], range: Range<Int>) {
    self.bytes = bytes
    (offset, end) = (range.lowerBound, range.upperBound)
  }

  /// Takes the next `count` bytes, or reports that they are not there.
  @discardableResult
  mutating func take(
    _ count: Int, _ name: String, _ meaning: String, value: (ArraySlice<UInt8>) -> String
  ) -> ArraySlice<UInt8> {
    guard !isBroken else { return [] }
    guard count <= end - offset else {
      isBroken = true
      nodes.append(
        .broken(at: offset, "\(end - offset) bytes for \(name), which has \(count)"))
      return []
    }
    let content = bytes[offset..<offset + count]
    nodes.append(
      InspectedNode(offset: offset, length: count, name: name, value: value(content), meaning: meaning))
    offset += count
    return content
  }
}
