import ByteCoding
import Testing

@testable import Cryptography

@Suite("Cache of verified issuers")
struct VerifiedIssuerCacheTests {
  private func rejection(
    of pki: SmallPKI, by validator: ChainValidator, leaf: Certificate? = nil, through intermediate: Certificate? = nil,
    at instant: Timestamp = SmallPKI.middle
  ) -> ChainRejection? {
    do throws(ChainRejection) {
      _ = try validator.validate(
        leaf: leaf ?? pki.leaf, intermediates: [intermediate ?? pki.intermediate], at: instant)
      return nil
    } catch {
      return error
    }
  }

  @Test("Issuers are cached; leaves only if the validator is told to cache every certificate")
  func whatIsKept() throws {
    let pki = try SmallPKI()
    for (remembered, count) in [(ChainValidator.Memory.issuers, 1), (.everyCertificate, 2)] {
      let validator = ChainValidator(roots: [pki.root], remembering: remembered)
      for _ in 0..<3 { #expect(rejection(of: pki, by: validator) == nil) }
      #expect(validator.memory.count == count)
    }
  }

  @Test("A cached certificate is refused before and after its validity period")
  func validityEachTime() throws {
    let (start, end) = (Timestamp(seconds: 1_740_000_000), Timestamp(seconds: 1_760_000_000))
    let pki = try SmallPKI(intermediate: { ($0.notBefore, $0.notAfter) = (start, end) })
    let validator = ChainValidator(roots: [pki.root], remembering: .everyCertificate)
    #expect(rejection(of: pki, by: validator) == nil)
    let (early, late) = (start.advanced(by: .nanoseconds(-1)), end.advanced(by: .nanoseconds(1)))
    #expect(
      rejection(of: pki, by: validator, at: early)
        == .notYetValid(subject: "CN=Intermediate", notBefore: start, at: early))
    #expect(
      rejection(of: pki, by: validator, at: late) == .expired(subject: "CN=Intermediate", notAfter: end, at: late))
    #expect(rejection(of: pki, by: validator, at: end) == nil)
  }

  @Test("A certificate that differs from the cached one in any byte is refused")
  func everyByte() throws {
    let pki = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root], remembering: .everyCertificate)
    #expect(rejection(of: pki, by: validator) == nil)
    for index in pki.intermediate.der.indices {
      var der = pki.intermediate.der
      der[index] ^= 1
      guard let altered = try? Certificate(der: der) else { continue }
      #expect(rejection(of: pki, by: validator, through: altered) != nil, "byte \(index)")
    }
    for index in pki.leaf.der.indices {
      var der = pki.leaf.der
      der[index] ^= 1
      guard let altered = try? Certificate(der: der) else { continue }
      #expect(rejection(of: pki, by: validator, leaf: altered) != nil, "byte \(index) of the leaf")
    }
    #expect(validator.memory.count == 2)
  }

  @Test("A refused certificate is not cached, for any reason of the refusal")
  func refusals() throws {
    let pki = try SmallPKI()
    let other = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root], remembering: .everyCertificate)
    for _ in 0..<2 {
      #expect(rejection(of: other, by: validator) != nil)
      #expect(rejection(of: pki, by: validator, at: SmallPKI.end.advanced(by: .seconds(1))) != nil)
      #expect(rejection(of: pki, by: validator, leaf: other.leaf) != nil)
    }
    #expect(validator.memory.count == 0)
  }

  @Test("A cached issuer does not validate a leaf that it has not signed")
  func otherLeaves() throws {
    let pki = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root])
    #expect(rejection(of: pki, by: validator) == nil)
    let forged = try SmallPKI.template("Leaf", pki.leafKey).signed(by: pki.intermediate, key: pki.leafKey)
    guard case .untrusted = rejection(of: pki, by: validator, leaf: forged) else {
      Issue.record("a signature by another key was accepted")
      return
    }
  }

  @Test("A cached leaf is refused under another issuer of the same name")
  func otherIssuer() throws {
    let pki = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root], remembering: .everyCertificate)
    #expect(rejection(of: pki, by: validator) == nil)
    let twinKey = try ECPrivateKey(.p256)
    var template = SmallPKI.template("Intermediate", twinKey)
    template.extensions = [.basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([.keyCertSign, .crlSign])]
    let twin = try template.signed(by: pki.root, key: pki.rootKey)
    guard case .untrusted = rejection(of: pki, by: validator, through: twin) else {
      Issue.record("accepted under an issuer that has not signed the leaf")
      return
    }
  }

  @Test("The cache is bounded to 16 issuers, and further valid issuers are still accepted")
  func bounded() throws {
    let pki = try SmallPKI()
    let validator = ChainValidator(roots: [pki.root])
    var chains: [(leaf: Certificate, intermediate: Certificate)] = []
    for number in 0..<20 {
      var authority = SmallPKI.template("Intermediate \(number)", pki.intermediateKey)
      authority.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign])]
      let intermediate = try authority.signed(by: pki.root, key: pki.rootKey)
      let leaf = try SmallPKI.template("Leaf", pki.leafKey).signed(by: intermediate, key: pki.intermediateKey)
      chains.append((leaf, intermediate))
    }
    for chain in chains + chains {
      #expect(rejection(of: pki, by: validator, leaf: chain.leaf, through: chain.intermediate) == nil)
    }
    #expect(validator.memory.count == 16)
  }
}
