import ByteCoding
import Cryptography
import Testing

@Suite("DER encoding")
struct DERTests {
  @Test(
    "Lengths have as few octets as possible",
    arguments: [
      (0, "0400"), (1, "0401"), (127, "047f"), (128, "048180"), (255, "0481ff"), (256, "04820100"), (65535, "0482ffff"),
      (65536, "0483010000"),
    ])
  func lengths(count: Int, head: String) throws {
    let encoded = DER.octetString([UInt8](repeating: 7, count: count))
    #expect(Hex.encode(encoded.prefix(encoded.count - count)) == head)
    var reader = ASN1Reader(encoded)
    #expect(try reader.octetString().count == count)
    try reader.end()
  }

  @Test(
    "Integers have as few octets as possible and are never negative",
    arguments: [
      ([], "020100"), ([0], "020100"), ([0, 0, 1], "020101"), ([0x7F], "02017f"), ([0x80], "02020080"),
      ([1, 0], "02020100"), ([0xFF, 0xFF], "020300ffff"),
    ] as [([UInt8], String)])
  func integers(magnitude: [UInt8], encoded: String) {
    #expect(Hex.encode(DER.integer(magnitude: magnitude)) == encoded)
  }

  @Test("An integer is decoded to the same number", arguments: [0, 1, 127, 128, 255, 256, 1 << 31, Int64.max])
  func numbers(number: Int64) throws {
    var reader = ASN1Reader(DER.integer(UInt64(number)))
    #expect(try reader.unsignedInteger() == Int(number))
  }

  @Test(
    "Times are encoded as in certificates (RFC 5280 section 4.1.2.5)",
    arguments: [
      ("1950-01-01T00:00:00Z", "170d3530303130313030303030305a"),
      ("2049-12-31T23:59:59Z", "170d3439313233313233353935395a"),
      ("2050-01-01T00:00:00Z", "180f32303530303130313030303030305a"),
      ("1949-12-31T23:59:59.9Z", "180f31393439313233313233353935395a"),
      ("2026-06-07T08:09:10.999Z", "170d3236303630373038303931305a"),
    ])
  func times(text: String, encoded: String) throws {
    #expect(Hex.encode(DER.time(try #require(Timestamp(rfc3339: text)))) == encoded)
  }

  @Test(
    "The zero bits after the last key usage are omitted",
    arguments: [
      (KeyUsage.digitalSignature, "03020780"), ([.keyCertSign, .crlSign], "03020106"),
      ([.digitalSignature, .nonRepudiation, .keyEncipherment, .dataEncipherment], "030204f0"),
    ] as [(KeyUsage, String)])
  func usages(usage: KeyUsage, encoded: String) {
    #expect(Hex.encode(CertificateExtension.keyUsage(usage).value) == encoded)
  }
}
