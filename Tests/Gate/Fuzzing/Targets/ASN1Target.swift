import Cryptography

extension FuzzTarget {
  static let asn1 = FuzzTarget(
    name: "asn1", longest: 8192, words: ["0\u{0}", "\u{0}\u{0}"], seeds: ASN1Laws.seeds, accepts: ASN1Laws.check)
}

/// A value has one encoding in DER. In BER its frame may have several, and every byte is in an element.
enum ASN1Laws {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    _ = try walk(ASN1Reader(input, rules: .ber), rules: .ber, bytes: input, depth: 0)
    return try walk(ASN1Reader(input), rules: .der, bytes: input, depth: 0)
  }

  /// Reports whether the elements fill `bytes`, and nested elements fill the constructed ones.
  private static func walk(
    _ reader: ASN1Reader, rules: ASN1Reader.Rules, bytes: [UInt8], depth: Int
  ) throws(InvariantViolation) -> Bool {
    var reader = reader
    var joined: [UInt8] = []
    var isWhole = true
    while !reader.isAtEnd {
      let tag = reader.nextTag
      guard let element = try? reader.next() else { return false }
      try require(element.tag == tag, "the element has the announced tag")
      joined += element.encoding
      let content = Array(element.content)
      if rules == .der {
        try require(DER.element(element.tag, content) == Array(element.encoding), "a value has one encoding in DER")
        try values(in: Array(element.encoding))
      }
      guard element.tag.isConstructed, depth < 8 else { continue }
      let isFilled = try walk(ASN1Reader(content, rules: rules), rules: rules, bytes: content, depth: depth + 1)
      isWhole = isWhole && isFilled
    }
    try require(joined == bytes, "every byte is in an element")
    try require((try? reader.end()) != nil, "the reader is at its end after the last element")
    return isWhole
  }

  /// Checks that the value of an element is written again unchanged.
  private static func values(in encoding: [UInt8]) throws(InvariantViolation) {
    var integer = ASN1Reader(encoding)
    if encoding.first == ASN1Tag.integer.octet, let number = try? integer.unsignedInteger() {
      try require(DER.integer(UInt64(number)) == encoding, "an integer has one encoding")
    }
    var octets = ASN1Reader(encoding)
    if encoding.first == ASN1Tag.octetString.octet, let content = try? octets.octetString() {
      try require(DER.octetString(Array(content)) == encoding, "an octet string has one encoding")
    }
    var bits = ASN1Reader(encoding)
    if encoding.first == ASN1Tag.bitString.octet, let content = try? bits.bitString() {
      try require(DER.bitString(Array(content)) == encoding, "a bit string without unused bits has one encoding")
    }
    var identifier = ASN1Reader(encoding)
    if let found = try? identifier.objectIdentifier() { _ = found.description }
  }

  static func seeds() throws -> [[UInt8]] {
    try CertificateInvariants.seeds().filter { $0.first == ASN1Tag.sequence.octet } + Fixtures.shared.receipts + [
      DER.integer(0), DER.integer(UInt64.max >> 1), DER.boolean(true), DER.null, DER.bitString([1, 2]),
      DER.indefinite(.sequence, DER.octetString([1, 2, 3]), DER.null),
    ]
  }
}
