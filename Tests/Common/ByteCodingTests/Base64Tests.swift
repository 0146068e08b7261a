import ByteCoding
import Foundation
import Testing

@Suite("Base 64")
struct Base64Tests {
  @Test("Encoding and decoding are inverse at every length, and the encoding is that of Foundation", arguments: 0..<70)
  func roundTrips(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) }
    #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
    var text = Array("a.".utf8)
    Base64URL.append(bytes, to: &text)
    #expect(String(decoding: text, as: UTF8.self) == "a." + Base64URL.encode(bytes))
    #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
  }

  @Test(
    "The examples of RFC 4648 are encoded and decoded",
    arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")])
  func examples(_ example: (text: String, encoding: String)) {
    let bytes = Array(example.text.utf8)
    #expect(Base64.encode(bytes) == example.encoding)
    #expect(Base64.decode(example.encoding) == bytes)
    #expect(Base64URL.encode(bytes) == example.encoding.filter { $0 != "=" })
  }

  @Test("The two alphabets differ in two characters, and each refuses those of the other one")
  func separatesAlphabets() {
    let bytes: [UInt8] = [0xFB, 0xFF, 0xBF]
    #expect(Base64.encode(bytes) == "+/+/")
    #expect(Base64URL.encode(bytes) == "-_-_")
    #expect(Base64.decode("-_-_") == nil)
    #expect(Base64URL.decode("+/+/") == nil)
  }

  @Test(
    "Other encodings are refused: wrong padding, white space, leftover bits, foreign characters",
    arguments: [
      "Zg", "Zg=", "Zg===", "Zg==Zg==", "Z===", "====", "=", "Zm9v=", "Zm9vYg", " Zg==", "Zg== ", "Zg\n==", "Zh==",
      "Zm9=", "Zm\\/", "Zm9*", "Zmé9", "Zg=A",
    ])
  func refuses(_ text: String) { #expect(Base64.decode(text) == nil) }

  @Test(
    "The URL alphabet refuses padding and leftover bits", arguments: ["Zg==", "Zm8=", "Z", "Zh", "Zm9", "Zm9v\n"])
  func refusesURL(_ text: String) { #expect(Base64URL.decode(text) == nil) }

  @Test("The last character before the padding has only one valid encoding of its bits")
  func hasOneEncoding() {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let accepted = alphabet.filter { Base64.decode("A\($0)==") != nil }
    #expect(String(accepted) == "AQgw")
    #expect(alphabet.count { Base64.decode("AA\($0)=") != nil } == 16)
  }
}

@Suite("Base 64 as peers write it")
struct ReceivedBase64Tests {
  @Test("Both alphabets, all padding or none, and line ends anywhere mean the same bytes", arguments: 0..<70)
  func forms(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 251 &+ 0xFB) }
    let (standard, url) = (Base64.encode(bytes), Base64URL.encode(bytes))
    let padding = standard.drop { $0 != "=" }
    for text in [standard, String(standard.prefix { $0 != "=" }), url, url + padding] {
      #expect(Base64.decode(anyForm: text) == bytes)
      for end in ["\n", "\r\n"] {
        let lines = stride(from: 0, to: text.utf8.count, by: 19).map { String(text.dropFirst($0).prefix(19)) }
        #expect(Base64.decode(anyForm: lines.joined(separator: end)) == bytes)
        #expect(Base64.decode(anyForm: lines.joined(separator: end) + end) == bytes)
        #expect(Base64.decode(anyForm: Substring(end + text + end)) == bytes)
      }
    }
  }

  @Test(
    "What has two meanings or none is refused",
    arguments: [
      // Two alphabets.
      "+_8=", "-/8=", "+/+/-_-_", "-_-_+/+/",
      // A part of the padding, too much of it, and digits after it.
      "Zg=", "Zg===", "Zm8==", "Zm9v=", "Zm9v====", "=", "====", "Zg==Zg==", "Zg=A", "Zg==\nZg==",
      // Bits that belong to no byte, and a digit alone.
      "Zh", "Zh==", "Zm9", "Zm9=", "Z", "Zm9vZ",
      // Other characters, also between lines.
      " Zm9v", "Zm9v ", "Zm 9v", "Zm9v\t", "Zm9v\u{0}", "Zm9\r", "Zm\r9v", "\rZm9v", "Zm9v\r\r\n", "Zm9v\u{85}",
      "Zm9v\u{2028}", "Zm9v,Zm9v", "Zm9vé", "Zm9*", "%5A%67", "data:;base64,Zm9v", "-----BEGIN-----\nZm9v", "Zm9v\u{B}",
    ])
  func refuses(_ text: String) { #expect(Base64.decode(anyForm: text) == nil) }

  @Test("Every text that is accepted has the bytes of its standard form")
  func normalizes() {
    let alphabet = Array("Aa1+/-_=\n\r ".utf8)
    for number in 0..<(11 * 11 * 11 * 11) {
      var (rest, text) = (number, [UInt8]())
      for _ in 0..<4 {
        text.append(alphabet[rest % 11])
        rest /= 11
      }
      let string = String(decoding: text, as: UTF8.self)
      guard let bytes = Base64.decode(anyForm: string) else { continue }
      let digits = string.utf8.filter { ![0x0A, 0x0D, 0x3D].contains($0) }
      let standard = String(decoding: digits.map { $0 == 0x2D ? 0x2B : $0 == 0x5F ? 0x2F : $0 }, as: UTF8.self)
      guard standard + String(repeating: "=", count: (4 - digits.count % 4) % 4) == Base64.encode(bytes) else {
        Issue.record("\(string.debugDescription) is read as \(bytes)")
        return
      }
    }
  }
}

@Suite("Comparison of secrets")
struct ConstantTimeTests {
  @Test("Equal secrets compare as equal; a difference in one bit or in length is found")
  func compares() {
    let secret: [UInt8] = Array(0..<32)
    #expect(constantTimeEqual(secret, Array(secret)))
    #expect(constantTimeEqual([], [UInt8]()))
    #expect(!constantTimeEqual(secret, secret.dropLast()))
    #expect(!constantTimeEqual(secret, secret + [0]))
    for offset in secret.indices {
      for bit in 0..<8 {
        var other = secret
        other[offset] ^= 1 << UInt8(bit)
        #expect(!constantTimeEqual(secret, other))
      }
    }
  }
}
