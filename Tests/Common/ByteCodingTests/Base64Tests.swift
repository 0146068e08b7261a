import ByteCoding
import Foundation
import Testing

@Suite("Base 64")
struct Base64Tests {
  @Test("What was written is read again, at every length, and is what others write", arguments: 0..<70)
  func roundTrips(_ count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) }
    #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
    #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
  }

  @Test(
    "RFC 4648's examples",
    arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")])
  func examples(_ example: (text: String, encoding: String)) {
    let bytes = Array(example.text.utf8)
    #expect(Base64.encode(bytes) == example.encoding)
    #expect(Base64.decode(example.encoding) == bytes)
    #expect(Base64URL.encode(bytes) == example.encoding.filter { $0 != "=" })
  }

  @Test("The two alphabets differ in two characters and take none of each other's")
  func separatesAlphabets() {
    let bytes: [UInt8] = [0xFB, 0xFF, 0xBF]
    #expect(Base64.encode(bytes) == "+/+/")
    #expect(Base64URL.encode(bytes) == "-_-_")
    #expect(Base64.decode("-_-_") == nil)
    #expect(Base64URL.decode("+/+/") == nil)
  }

  @Test(
    "Every other spelling is refused: padding, white space, leftover bits, foreign characters",
    arguments: [
      "Zg", "Zg=", "Zg===", "Zg==Zg==", "Z===", "====", "=", "Zm9v=", "Zm9vYg", " Zg==", "Zg== ", "Zg\n==", "Zh==",
      "Zm9=", "Zm\\/", "Zm9*", "Zmé9", "Zg=A",
    ])
  func refuses(_ text: String) { #expect(Base64.decode(text) == nil) }

  @Test(
    "The URL alphabet takes no padding and no leftover bits", arguments: ["Zg==", "Zm8=", "Z", "Zh", "Zm9", "Zm9v\n"])
  func refusesURL(_ text: String) { #expect(Base64URL.decode(text) == nil) }

  @Test("Each of two characters' last bits has one spelling")
  func hasOneSpelling() {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let accepted = alphabet.filter { Base64.decode("A\($0)==") != nil }
    #expect(String(accepted) == "AQgw")
    #expect(alphabet.count { Base64.decode("AA\($0)=") != nil } == 16)
  }
}

@Suite("Comparing secrets")
struct ConstantTimeTests {
  @Test("Equal is equal, and any difference, also of length, is not")
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
