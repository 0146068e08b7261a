import ByteCoding
import Cryptography
import Testing

@Suite("Certificate chains")
struct ChainValidatorTests {
  private static let unknown = ObjectIdentifier("1.3.6.1.4.1.55555.1")

  @Test("A valid chain is returned from the leaf to the root")
  func isValid() throws {
    let pki = try SmallPKI()
    let chain = try ChainValidator(roots: [pki.root]).validate(
      leaf: pki.leaf, intermediates: [pki.intermediate], at: SmallPKI.middle)
    #expect(chain == [pki.leaf, pki.intermediate, pki.root])
  }

  @Test("The chain may contain the root, in any order, and other roots may be pinned too")
  func acceptsRootInChain() throws {
    let pki = try SmallPKI()
    let other = try SmallPKI(root: { $0.subject = DistinguishedName(.commonName("Other")) })
    #expect(pki.rejection(through: [pki.root, pki.intermediate]) == nil)
    #expect(pki.rejection(roots: [other.root, pki.root], through: [pki.intermediate, pki.root]) == nil)
  }

  @Test("Of two pinned roots with the same name and key, the currently valid one is used, in either order")
  func usesValidRoot() throws {
    let pki = try SmallPKI()
    for (start, end) in [(SmallPKI.start, SmallPKI.middle), (SmallPKI.end, SmallPKI.end)] {
      var template = SmallPKI.template("Root", pki.rootKey)
      template.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign, .crlSign])]
      (template.notBefore, template.notAfter) = (start, end.advanced(by: .seconds(-1)))
      let twin = try template.selfSigned(with: pki.rootKey)
      #expect(pki.rejection(roots: [twin, pki.root]) == nil)
      #expect(pki.rejection(roots: [pki.root, twin]) == nil)
      #expect(pki.rejection(roots: [twin]) != nil)
    }
  }

  @Test("The validity period includes both limits, to the nanosecond")
  func includesEnds() throws {
    let pki = try SmallPKI()
    let (start, end) = (SmallPKI.start, SmallPKI.end)
    #expect(pki.rejection(at: start) == nil)
    #expect(pki.rejection(at: end) == nil)
    let (early, late) = (start.advanced(by: .nanoseconds(-1)), end.advanced(by: .nanoseconds(1)))
    #expect(pki.rejection(at: early) == .notYetValid(subject: "CN=Leaf", notBefore: start, at: early))
    #expect(pki.rejection(at: late) == .expired(subject: "CN=Leaf", notAfter: end, at: late))
  }

  @Test("Every certificate must be within its validity period, the root too")
  func checksEveryValidity() throws {
    let before: (inout CertificateTemplate) -> Void = { $0.notAfter = Timestamp(seconds: 1_740_000_000) }
    let after: (inout CertificateTemplate) -> Void = { $0.notBefore = Timestamp(seconds: 1_760_000_000) }
    let expired = [
      "CN=Root": try SmallPKI(root: before), "CN=Intermediate": try SmallPKI(intermediate: before),
      "CN=Leaf": try SmallPKI(leaf: before),
    ]
    for (subject, pki) in expired {
      #expect(
        pki.rejection()
          == .expired(subject: subject, notAfter: Timestamp(seconds: 1_740_000_000), at: SmallPKI.middle))
    }
    for pki in [try SmallPKI(root: after), try SmallPKI(intermediate: after), try SmallPKI(leaf: after)] {
      guard case .notYetValid = pki.rejection() else {
        Issue.record("not refused as not yet valid")
        continue
      }
    }
  }

  @Test("Only chains to a pinned root are trusted")
  func pinsRoots() throws {
    let (pki, other) = (try SmallPKI(), try SmallPKI())
    let rejections: [ChainRejection?] = [
      pki.rejection(roots: []), pki.rejection(roots: [other.root]), pki.rejection(through: []),
      pki.rejection(through: [other.intermediate]),
      pki.rejection(roots: [other.root], through: [pki.intermediate, pki.root]),
      try SmallPKI(leafSigner: ECPrivateKey(.p256)).rejection(),
    ]
    for rejection in rejections {
      guard case .untrusted = rejection else {
        Issue.record("\(String(describing: rejection))")
        continue
      }
    }
  }

  @Test("An issuer must be a certificate authority and may sign certificates")
  func requiresAuthority() throws {
    let alterations: [(inout CertificateTemplate) -> Void] = [
      { $0.extensions[0] = .basicConstraints(isAuthority: false) },
      { $0.extensions.removeFirst() },
      { $0.extensions = [] },
      { $0.extensions[1] = .keyUsage([.digitalSignature]) },
      { $0.version = .v1 },
    ]
    for alter in alterations {
      #expect(try SmallPKI(intermediate: alter).rejection() != nil)
      #expect(try SmallPKI(root: alter).rejection() != nil)
    }
    #expect(try SmallPKI(intermediate: { $0.extensions.removeLast() }).rejection() == nil)
  }

  @Test("A chain is not longer than the path length of an authority allows")
  func boundsPaths() throws {
    let pki = try SmallPKI()
    var template = SmallPKI.template("Second", pki.leafKey)
    template.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign])]
    let second = try template.signed(by: pki.intermediate, key: pki.intermediateKey)
    var last = SmallPKI.template("Last", try ECPrivateKey(.p256))
    last.extensions = [.basicConstraints(isAuthority: false)]
    let leaf = try last.signed(by: second, key: pki.leafKey)
    #expect(throws: ChainRejection.self) {
      try ChainValidator(roots: [pki.root]).validate(
        leaf: leaf, intermediates: [second, pki.intermediate], at: SmallPKI.middle)
    }
  }

  @Test("A leaf is not an authority, and its key usage, if present, includes signatures")
  func checksTheLeaf() throws {
    let authority = try SmallPKI(leaf: {
      $0.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.digitalSignature, .keyCertSign])]
    })
    #expect(authority.rejection() == .leafIsAuthority(subject: "CN=Leaf"))
    let withoutCertificateSigning = try SmallPKI(leaf: { $0.extensions[0] = .basicConstraints(isAuthority: true) })
    #expect(withoutCertificateSigning.rejection() == .leafIsAuthority(subject: "CN=Leaf"))
    let withoutSigning = try SmallPKI(leaf: { $0.extensions[1] = .keyUsage([.keyEncipherment]) })
    #expect(withoutSigning.rejection() == .leafMustNotSign(subject: "CN=Leaf"))
    #expect(try SmallPKI(leaf: { $0.extensions = [] }).rejection() == nil)
    #expect(try SmallPKI(leaf: { $0.version = .v1 }).rejection() == nil)
  }

  @Test("Unknown extensions are ignored, unknown critical extensions are refused")
  func refusesUnknownCriticalExtensions() throws {
    let unknown = try #require(Self.unknown)
    for isCritical in [false, true] {
      let add: (inout CertificateTemplate) -> Void = {
        $0.extensions.append(CertificateExtension(unknown, isCritical: isCritical, value: [5, 0]))
      }
      #expect((try SmallPKI(leaf: add).rejection() == nil) == !isCritical)
      #expect((try SmallPKI(intermediate: add).rejection() == nil) == !isCritical)
    }
  }

  /// With contents that OpenSSL parses, which therefore would accept them as critical.
  static let unprocessed: [(identifier: String, value: [UInt8])] = [
    // certificatePolicies with anyPolicy, policyMappings, policyConstraints that require a policy, inhibitAnyPolicy,
    // extKeyUsage for signing code, cRLDistributionPoints.
    ("2.5.29.32", [0x30, 0x08, 0x30, 0x06, 0x06, 0x04, 0x55, 0x1D, 0x20, 0x00]),
    ("2.5.29.33", [0x30, 0x0A, 0x30, 0x08, 0x06, 0x02, 0x2A, 0x03, 0x06, 0x02, 0x2A, 0x04]),
    ("2.5.29.36", [0x30, 0x03, 0x80, 0x01, 0x00]), ("2.5.29.54", [0x02, 0x01, 0x00]),
    ("2.5.29.37", [0x30, 0x0A, 0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03]),
    ("2.5.29.31", [0x30, 0x0A, 0x30, 0x08, 0xA0, 0x06, 0xA0, 0x04, 0x86, 0x02, 0x61, 0x3A]), ("1.2.3.4", [5, 0]),
  ]

  @Test("A critical extension that is not processed is refused by its name, below the root", arguments: unprocessed)
  func refusesUnprocessed(identifier: String, value: [UInt8]) throws {
    let extended = try #require(ObjectIdentifier(identifier))
    for isCritical in [false, true] {
      let add: (inout CertificateTemplate) -> Void = {
        $0.extensions.append(CertificateExtension(extended, isCritical: isCritical, value: value))
      }
      for (pki, subject) in [
        (try SmallPKI(leaf: add), "CN=Leaf"), (try SmallPKI(intermediate: add), "CN=Intermediate"),
      ] {
        let expected = ChainRejection.criticalExtension(subject: subject, identifier: identifier)
        #expect(pki.rejection() == (isCritical ? expected : nil), "\(subject)")
      }
    }
  }

  @Test("An extension that OpenSSL cannot read is refused by that rule, also if it is not critical")
  func refusesUnreadable() throws {
    let keyIdentifier = try #require(ObjectIdentifier("2.5.29.14"))
    for value in [[UInt8(0xFF)], [0x04, 0x02, 1, 2]] {
      let add: (inout CertificateTemplate) -> Void = {
        $0.extensions.append(CertificateExtension(keyIdentifier, value: value))
      }
      let isReadable = value.count == 4
      for (pki, subject) in [
        (try SmallPKI(leaf: add), "CN=Leaf"), (try SmallPKI(intermediate: add), "CN=Intermediate"),
      ] {
        #expect(pki.rejection() == (isReadable ? nil : .unreadableExtension(subject: subject)))
      }
    }
  }

  @Test("An algorithm that does not fit the issuer's key is refused by that rule, and not as a missing issuer")
  func refusesOtherAlgorithm() throws {
    let pki = try SmallPKI()
    // ecdsa-with-SHA256 and sm2-with-SM3, which is as long, and for another kind of key.
    let (ecdsa, sm2) =
      ([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02], [0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x83, 0x75])
      as ([UInt8], [UInt8])
    var der = pki.leaf.der
    var found = 0
    for start in 0...(der.count - ecdsa.count) where Array(der[start..<start + ecdsa.count]) == ecdsa {
      der.replaceSubrange(start..<start + ecdsa.count, with: sm2)
      found += 1
    }
    #expect(found == 2)
    let leaf = try Certificate(der: der)
    #expect(
      throws: ChainRejection.untrusted(
        subject: "CN=Leaf", reason: "subject signature algorithm and issuer public key algorithm mismatch")
    ) {
      try ChainValidator(roots: [pki.root]).validate(
        leaf: leaf, intermediates: [pki.intermediate], at: SmallPKI.middle)
    }
    // The same for a verifier that walks the chain itself.
    #expect(pki.leaf.hasSignatureAlgorithm(for: try IssuerKey(spki: pki.intermediate.subjectPublicKeyInfo)))
    #expect(!leaf.hasSignatureAlgorithm(for: try IssuerKey(spki: pki.intermediate.subjectPublicKeyInfo)))
  }

  @Test("Name constraints of an issuer are checked only after its signature is verified", arguments: [true, false])
  func verifiesBeforeNames(_ isSigned: Bool) throws {
    let pki = try SmallPKI()
    var authority = SmallPKI.template("Intermediate", pki.intermediateKey)
    // NameConstraints: excludedSubtrees [1] of one GeneralSubtree, a dNSName [2] of 11 bytes.
    let excluded: [UInt8] = [0x30, 0x11, 0xA1, 0x0F, 0x30, 0x0D, 0x82, 0x0B] + Array("example.com".utf8)
    authority.extensions = [
      .basicConstraints(isAuthority: true), .keyUsage([.keyCertSign]),
      CertificateExtension(try #require(ObjectIdentifier("2.5.29.30")), isCritical: true, value: excluded),
    ]
    let otherKey = try ECPrivateKey(.p384)
    let intermediate = try authority.signed(by: pki.root, key: isSigned ? pki.rootKey : otherKey)
    var template = SmallPKI.template("Leaf", pki.leafKey)
    template.extensions = [.subjectAlternativeNames(dns: ["a.example.com"], addresses: [])]
    let leaf = try template.signed(by: intermediate, key: pki.intermediateKey)
    let expected = ChainRejection.untrusted(
      subject: isSigned ? "CN=Leaf" : "CN=Intermediate",
      reason: isSigned ? "excluded subtree violation" : "certificate signature failure")
    #expect(throws: expected) {
      try ChainValidator(roots: [pki.root]).validate(
        leaf: leaf, intermediates: [intermediate], at: SmallPKI.middle)
    }
  }

  @Test("A certificate outside the chain is refused, because no signature covers its bytes")
  func refusesStrays() throws {
    let (pki, other) = (try SmallPKI(), try SmallPKI())
    for stray in [other.root, other.intermediate, other.leaf] {
      #expect(pki.rejection(through: [pki.intermediate, stray]) == .strayCertificate(subject: stray.subject))
    }
  }

  @Test("A root with the name and key of the pinned one, but with other bytes, is refused")
  func comparesRootsAsBytes() throws {
    let pki = try SmallPKI()
    var template = SmallPKI.template("Root", pki.rootKey)
    template.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign, .crlSign])]
    let twin = try template.selfSigned(with: pki.rootKey)
    #expect(pki.rejection(through: [pki.intermediate, twin]) == .strayCertificate(subject: "CN=Root"))
  }

  @Test("A certificate whose key OpenSSL cannot read is refused")
  func refusesUnreadableKeys() throws {
    let pki = try SmallPKI(leaf: { template in
      template.subjectPublicKeyInfo[template.subjectPublicKeyInfo.count - 1] ^= 1
    })
    #expect(pki.rejection() != nil)
  }
}
