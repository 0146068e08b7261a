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
