import ByteCoding
import Cryptography
import Testing

@Suite("Digests and authentication codes")
struct DigestTests {
  @Test(
    "The examples of FIPS 180-4 are hashed",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
    ])
  func hashes(_ example: (message: String, digest: String)) {
    let message = Array(example.message.utf8)
    #expect(Hex.encode(SHA256.hash(message)) == example.digest)
    #expect(SHA256.hash(([0] + message)[1...]) == SHA256.hash(message))
    #expect(SHA256.hash(Array(message.prefix(2)), [], Array(message.dropFirst(2))) == SHA256.hash(message))
  }

  @Test(
    "The test cases of RFC 4231 are authenticated",
    arguments: [
      (
        String(repeating: "0b", count: 20), "4869205468657265",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        String(repeating: "aa", count: 131),
        "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
    ])
  func authenticates(_ example: (key: String, message: String, code: String)) throws {
    let (key, message) = (try #require(Hex.decode(example.key)), try #require(Hex.decode(example.message)))
    #expect(Hex.encode(HMACSHA256.authenticate(message, key: key)) == example.code)
  }

  @Test("An empty key is accepted")
  func authenticatesWithoutKey() {
    let code = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
    #expect(Hex.encode(HMACSHA256.authenticate([], key: [])) == code)
  }

  @Test("Random bytes have the requested count and are not repeated", arguments: [0, 1, 16, 32, 4096])
  func isRandom(_ count: Int) {
    let bytes = SecureRandom.bytes(count)
    #expect(bytes.count == count)
    #expect(count < 16 || SecureRandom.bytes(count) != bytes)
  }
}
