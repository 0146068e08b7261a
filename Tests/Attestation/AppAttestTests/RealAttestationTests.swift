import AppAttest
import ByteCoding
import Cryptography
import Testing

@Suite("Attestations from real devices", .enabled(if: Vectors.arePresent, Vectors.absence))
struct RealAttestationTests {
  @Test("A real attestation verifies at its time and returns its key", arguments: Vectors.attestations)
  func verifies(_ vector: Vectors.Attestation) throws {
    let object = try AttestationObject(vector.bytes)
    let verified = try vector.verifier().verify(
      object, keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
    #expect(verified.key.keyID == (try vector.keyID))
    #expect(verified.key.publicKey == Base64.decode(vector.publicKeyX963))
    #expect(verified.key.appID == (try vector.app))
    #expect(verified.key.environment.rawValue == vector.environment)
    #expect(object.authenticatorData.count == vector.authDataLen)
    #expect(verified.receipt == object.receipt)
    #expect(verified.receipt.kind == .attest)
  }

  @Test("The receipt of a real attestation was made within a second of it", arguments: Vectors.attestations)
  func receiptIsFresh(_ vector: Vectors.Attestation) throws {
    let age = try AttestationObject(vector.bytes).receipt.creationTime.since(vector.instant)
    #expect(age >= .zero && age < .seconds(1))
  }

  @Test("The extensions of iOS 27 are read by offset, because the flag is not set in Apple's sample")
  func readsExtensions() throws {
    for vector in try Vectors.read().attestations {
      let verified = try vector.verifier().verify(
        AttestationObject(vector.bytes), keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
      let isNew = vector.authDataLen > 164
      #expect(verified.key.validationCategory == (isNew ? .operatingSystem : nil))
      #expect(verified.key.bundleVersion == (isNew ? "1" : nil))
    }
  }

  @Test("A real attestation verifies until the last second of its leaf's validity", arguments: Vectors.attestations)
  func expires(_ vector: Vectors.Attestation) throws {
    let end = try time(vector.leafNotAfter)
    // The last leaf is valid longer than its receipt, which is then refused by itself.
    let receiptEnd = try AttestationObject(vector.bytes).receipt.expirationTime
    if end <= receiptEnd { #expect(try rejection(of: vector, at: end) == nil) }
    let late = end.advanced(by: .seconds(1))
    guard case .untrustedChain(.expired(_, end, late)) = try rejection(of: vector, at: late) else {
      Issue.record("not refused as expired")
      return
    }
  }

  @Test("A real attestation does not verify a second before its leaf is valid", arguments: Vectors.attestations)
  func isNotYetValid(_ vector: Vectors.Attestation) throws {
    let start = try time(vector.leafNotBefore)
    let early = start.advanced(by: .seconds(-1))
    guard case .untrustedChain(.notYetValid(_, start, early)) = try rejection(of: vector, at: early) else {
      Issue.record("not refused as not yet valid")
      return
    }
  }

  @Test("A real attestation does not verify today", arguments: Vectors.attestations)
  func isOver(_ vector: Vectors.Attestation) throws {
    guard case .untrustedChain(.expired) = try rejection(of: vector, at: .now()) else {
      Issue.record("not refused as expired")
      return
    }
  }

  @Test("A real attestation does not verify for another app", arguments: Vectors.attestations)
  func refusesOtherApp(_ vector: Vectors.Attestation) throws {
    let other = try #require(AppID("AAABBBCCC1.com.example.app"))
    #expect(throws: AttestationRejection.rpIDMismatch(found: try vector.app.hash)) {
      try vector.verifier(for: other).verify(
        AttestationObject(vector.bytes), keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
    }
  }

  @Test(
    "A real attestation does not verify for an app that is not allowed in its environment",
    arguments: Vectors.attestations)
  func refusesOtherEnvironment(_ vector: Vectors.Attestation) throws {
    let environment = try #require(AttestEnvironment(rawValue: vector.environment))
    let others = Set(AttestEnvironment.allCases).subtracting([environment])
    let verifier = AttestationVerifier(
      apps: [try vector.app: others], attestationRoots: [AppleRoots.appAttestation],
      receiptRoots: [AppleRoots.appleRootG3])
    #expect(throws: AttestationRejection.environmentNotAllowed(environment, app: try vector.app)) {
      try verifier.verify(
        AttestationObject(vector.bytes), keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
    }
  }

  @Test("A real attestation does not verify for another key identifier", arguments: Vectors.attestations)
  func refusesOtherKey(_ vector: Vectors.Attestation) throws {
    let other = try #require(KeyID(bytes: SHA256.hash([1])))
    #expect(try rejection(of: vector, keyID: other) == .keyIDMismatch(expected: other))
  }

  @Test("A real attestation does not verify for another client data hash", arguments: Vectors.attestations)
  func refusesOtherHash(_ vector: Vectors.Attestation) throws {
    let hash = try vector.hash.bytes
    let others = [[], Array(hash.dropLast()), hash + [0], SHA256.hash(hash)]
    for other in others.map(ClientDataHash.init(bytes:)) {
      guard case .nonceMismatch = try rejection(of: vector, hash: other) else {
        Issue.record("not refused because of the nonce")
        continue
      }
    }
  }

  @Test("An attestation does not verify under the root for receipts, nor a receipt under the root for attestations")
  func refusesOtherRoots() throws {
    let vector = try #require(Vectors.attestations.first)
    func rejection(attestationRoot: Certificate, receiptRoot: Certificate) throws -> String? {
      let verifier = AttestationVerifier(
        apps: [try vector.app: [.development]], attestationRoots: [attestationRoot], receiptRoots: [receiptRoot])
      let error = #expect(throws: AttestationRejection.self) {
        try verifier.verify(
          AttestationObject(vector.bytes), keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
      }
      return error?.step
    }
    let (attestation, receipt) = (AppleRoots.appAttestation, AppleRoots.appleRootG3)
    #expect(try rejection(attestationRoot: receipt, receiptRoot: receipt) == "certificate_chain")
    #expect(try rejection(attestationRoot: attestation, receiptRoot: attestation) == "receipt_certificate_chain")
  }

  private func rejection(
    of vector: Vectors.Attestation, keyID: KeyID? = nil, hash: ClientDataHash? = nil, at instant: Timestamp? = nil
  ) throws -> AttestationRejection? {
    let (object, verifier) = (try AttestationObject(vector.bytes), try vector.verifier())
    let (keyID, hash, instant) = (try keyID ?? vector.keyID, try hash ?? vector.hash, try instant ?? vector.instant)
    do throws(AttestationRejection) {
      _ = try verifier.verify(object, keyID: keyID, clientDataHash: hash, at: instant)
      return nil
    } catch {
      return error
    }
  }
}
