import ByteCoding
import Cryptography
import Testing

@Suite("ASN.1 reader")
struct ASN1ReaderTests {
  private func read(_ hex: String, _ rules: ASN1Reader.Rules = .der) throws -> [ASN1Reader.Element] {
    var reader = ASN1Reader(try #require(Hex.decode(hex)), rules: rules)
    var elements: [ASN1Reader.Element] = []
    while !reader.isAtEnd { elements.append(try reader.next()) }
    return elements
  }

  @Test("Elements are read in order, each with its tag, its content and its encoding")
  func readsElements() throws {
    let elements = try read("0500" + "0401aa" + "3003020101")
    #expect(elements.map(\.tag) == [.null, .octetString, .sequence])
    #expect(elements.map { Hex.encode($0.content) } == ["", "aa", "020101"])
    #expect(elements.map { Hex.encode($0.encoding) } == ["0500", "0401aa", "3003020101"])
  }

  @Test("Every encoded length is read", arguments: [0, 1, 127, 128, 255, 256, 65535, 65536])
  func readsLengths(_ count: Int) throws {
    var reader = ASN1Reader(DER.octetString([UInt8](repeating: 3, count: count)) + [0])
    #expect(try reader.octetString().count == count)
    #expect(throws: ASN1Error.trailingBytes(1)) { try reader.end() }
  }

  @Test(
    "Violations of the encoding rules are refused",
    arguments: [
      ("04", ASN1Error.truncated), ("0401", .truncated), ("0482", .truncated), ("048201", .truncated),
      ("0484ffffffff", .truncated), ("04847fffffff00", .truncated),
      ("048101aa", .lengthNotMinimal), ("04817f", .lengthNotMinimal), ("04820080", .lengthNotMinimal),
      ("0485000000000100", .lengthNotMinimal), ("04ff", .lengthNotMinimal), ("1f8100", .longTag),
      ("bf893400", .longTag),
      ("30800000", .indefiniteLength), ("0480", .indefiniteLength),
    ])
  func refuses(_ example: (hex: String, error: ASN1Error)) throws {
    #expect(throws: example.error) { try read(example.hex) }
  }

  @Test("Under BER, an indefinite length ends at its end-of-contents octets, also if nested")
  func readsIndefiniteLengths() throws {
    let elements = try read("3080" + "2480" + "0401aa" + "0000" + "0500" + "0000" + "0101ff", .ber)
    #expect(elements.map { Hex.encode($0.content) } == ["24800401aa00000500", "ff"])
    #expect(elements.first?.encoding.count == 13)
  }

  @Test(
    "Violations of the encoding rules are refused under BER too",
    arguments: [
      ("3080", ASN1Error.truncated), ("308005", .truncated), ("30800500", .truncated), ("3080050000", .truncated),
      ("0480aa0000", .indefiniteLength), ("3080000100", .malformed("end-of-contents octets with content")),
      ("308004810000", .lengthNotMinimal),
    ])
  func refusesUnderBER(_ example: (hex: String, error: ASN1Error)) throws {
    #expect(throws: example.error) { try read(example.hex, .ber) }
  }

  @Test("The nesting of indefinite lengths is bounded, and so is the recursion of the reader")
  func boundsDepth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "3080", count: depth) + String(repeating: "0000", count: depth)
    }
    #expect(try read(nested(ASN1Reader.maximumDepth), .ber).count == 1)
    #expect(throws: ASN1Error.tooDeep) { try read(nested(ASN1Reader.maximumDepth + 1), .ber) }
    #expect(throws: ASN1Error.tooDeep) { try read(String(repeating: "3080", count: 100_000), .ber) }
  }

  @Test("A part that must be DER inside BER must also have a DER length")
  func entersUnderStricterRules() throws {
    var reader = ASN1Reader([0x30, 0x80, 0x30, 0x80, 0, 0, 0, 0], rules: .ber)
    var inner = try reader.enter(.sequence)
    #expect(throws: ASN1Error.indefiniteLength) { try inner.enter(.sequence, rules: .der) }
  }

  @Test("An element with an unexpected tag is not consumed")
  func expectsTags() throws {
    var reader = ASN1Reader([0x05, 0x00])
    #expect(throws: ASN1Error.unexpectedTag(expected: .set, found: .null)) { try reader.next(.set) }
    #expect(try reader.nextIfPresent(.set) == nil)
    #expect(try reader.nextIfPresent(.null)?.content.isEmpty == true)
    #expect(reader.isAtEnd)
    #expect(throws: ASN1Error.truncated) { try reader.next(.set) }
  }

  @Test("Integers are minimal, not negative, and have at most 63 bits")
  func readsIntegers() throws {
    for number: UInt64 in [0, 1, 127, 128, 255, 256, 65535, UInt64(Int64.max)] {
      var reader = ASN1Reader(DER.integer(number))
      #expect(try reader.unsignedInteger() == Int(number))
    }
    for hex in ["0200", "0201ff", "02020001", "0209008000000000000000", "020a00000000000000000001"] {
      var reader = ASN1Reader(try #require(Hex.decode(hex)))
      #expect(throws: ASN1Error.self, "\(hex)") { try reader.unsignedInteger() }
    }
  }

  @Test("Bit strings with unused bits are refused")
  func readsBitStrings() throws {
    var whole = ASN1Reader(DER.bitString([0xAA, 0xBB]))
    #expect(try Array(whole.bitString()) == [0xAA, 0xBB])
    var partial = ASN1Reader(DER.bitString([0x80], unused: 7))
    #expect(throws: ASN1Error.self) { try partial.bitString() }
    var empty = ASN1Reader([0x03, 0x00])
    #expect(throws: ASN1Error.self) { try empty.bitString() }
  }

  @Test(
    "Object identifiers are decoded, encoded and shown in dotted form",
    arguments: [
      ("1.2.840.113635.100.8.2", "2a864886f7636408 02"), ("2.5.29.15", "551d0f"), ("0.39", "27"), ("2.999", "8837"),
      ("2.16.840.1.101.3.4.2.1", "608648016503040201"),
    ])
  func readsIdentifiers(_ example: (dotted: String, hex: String)) throws {
    let content = try #require(Hex.decode(example.hex.filter { $0 != " " }))
    let identifier = try #require(ObjectIdentifier(example.dotted))
    #expect(DER.objectIdentifier(identifier) == DER.element(.objectIdentifier, content))
    var reader = ASN1Reader(DER.element(.objectIdentifier, content))
    let read = try reader.objectIdentifier()
    #expect(read == identifier)
    #expect(read.description == example.dotted)
  }

  @Test(
    "Text that is not an object identifier is refused",
    arguments: ["", "1", "1.", "3.1", "1.40", "1..2", "a.b", "1.-2"])
  func refusesIdentifiers(_ text: String) { #expect(ObjectIdentifier(text) == nil) }

  @Test(
    "Malformed object identifiers are shown in hexadecimal",
    arguments: ["", "80", "2a86", "ffffffffffffffffffff7f"])
  func showsMalformedIdentifiers(_ hex: String) throws {
    var reader = ASN1Reader(DER.element(.objectIdentifier, try #require(Hex.decode(hex))))
    #expect(try reader.objectIdentifier().description == "0x" + hex)
  }
}
