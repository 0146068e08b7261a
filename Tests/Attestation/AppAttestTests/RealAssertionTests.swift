import AppAttest
import ByteCoding
import CBOR
import Cryptography
import Testing

@Suite("Assertions from real devices", .enabled(if: Vectors.arePresent, Vectors.absence))
struct RealAssertionTests {
  private let verifier = AssertionVerifier()

  @Test("A real assertion verifies after counter 0 and returns its own counter", arguments: Vectors.assertions)
  func verifies(_ vector: Vectors.Assertion) throws {
    let assertion = try Assertion(vector.bytes)
    let counter = try verifier.verify(assertion, by: vector.key, clientDataHash: vector.hash, after: .zero)
    #expect(counter == SignCount(vector.counter))
    let again = try verifier.verify(
      assertion, by: vector.key, publicKey: vector.publicKey, clientDataHash: vector.hash, after: .zero)
    #expect(again == counter)
  }

  @Test("A real assertion does not verify after its own counter or a greater one", arguments: Vectors.assertions)
  func refusesReplay(_ vector: Vectors.Assertion) throws {
    for last in [SignCount(vector.counter), SignCount(vector.counter + 1), SignCount(.max)] {
      #expect(throws: AssertionRejection.counterNotGreater(found: SignCount(vector.counter), last: last)) {
        try verifier.verify(Assertion(vector.bytes), by: vector.key, clientDataHash: vector.hash, after: last)
      }
    }
  }

  @Test("A real assertion does not verify for another client data hash", arguments: Vectors.assertions)
  func refusesOtherHash(_ vector: Vectors.Assertion) throws {
    let hash = try vector.hash.bytes
    for other in [[], Array(hash.dropLast()), hash + [0], SHA256.hash(hash)] {
      #expect(throws: AssertionRejection.invalidSignature) {
        try verifier.verify(
          Assertion(vector.bytes), by: vector.key, clientDataHash: ClientDataHash(bytes: other), after: .zero)
      }
    }
  }

  @Test("T-58 A real assertion is signed over a digest that is hashed once more, not over the data of that digest")
  func isHashedTwice() throws {
    for vector in try Vectors.read().assertions {
      let assertion = try Assertion(vector.bytes)
      let covered = try assertion.authenticatorData + vector.hash.bytes
      #expect(try vector.publicKey.isValidSignature(assertion.signature, for: SHA256.hash(covered)))
      #expect(try !vector.publicKey.isValidSignature(assertion.signature, for: covered))
    }
  }

  @Test("A real assertion does not verify under the key of another device, also if its own parsed key is passed")
  func refusesOtherKeys() throws {
    let vectors = try Vectors.read().assertions
    for vector in vectors {
      for other in vectors where other.name != vector.name {
        #expect(throws: AssertionRejection.invalidSignature) {
          try verifier.verify(Assertion(vector.bytes), by: other.key, clientDataHash: vector.hash, after: .zero)
        }
        #expect(throws: AssertionRejection.invalidSignature) {
          try verifier.verify(
            Assertion(vector.bytes), by: other.key, publicKey: vector.publicKey, clientDataHash: vector.hash,
            after: .zero)
        }
      }
    }
  }

  @Test("A real assertion does not verify for a key that is bound to another app", arguments: Vectors.assertions)
  func refusesOtherApp(_ vector: Vectors.Assertion) throws {
    let app = try #require(AppID("AAABBBCCC1.com.example.app"))
    let key = try AttestedKey(
      keyID: vector.key.keyID, publicKey: vector.key.publicKey, appID: app, environment: .development)
    #expect(throws: AssertionRejection.rpIDMismatch(expected: app, found: try vector.key.appID.hash)) {
      try verifier.verify(Assertion(vector.bytes), by: key, clientDataHash: vector.hash, after: .zero)
    }
  }

  @Test("A real assertion with any bit changed does not verify", arguments: Vectors.assertions)
  func refusesEveryChange(_ vector: Vectors.Assertion) async throws {
    let (bytes, key, publicKey, hash) = (try vector.bytes, try vector.key, try vector.publicKey, try vector.hash)
    for change in ByteChange.everyBit(of: bytes) {
      if change.mask == 1 { await Task.yield() }
      let verifies = (try? Assertion(change.applied(to: bytes))).map { assertion in
        (try? verifier.verify(assertion, by: key, publicKey: publicKey, clientDataHash: hash, after: .zero)) != nil
      }
      #expect(verifies != true, "\(change)")
    }
  }

  @Test(
    "A real assertion that is truncated at any byte or has a trailing byte is refused", arguments: Vectors.assertions)
  func refusesOtherLengths(_ vector: Vectors.Assertion) throws {
    let bytes = try vector.bytes
    for count in 0..<bytes.count {
      #expect(throws: AssertionRejection.self) { try Assertion(Array(bytes.prefix(count))) }
    }
    #expect(throws: AssertionRejection.notCBOR(.trailingBytes(offset: bytes.count))) { try Assertion(bytes + [0]) }
  }
}
