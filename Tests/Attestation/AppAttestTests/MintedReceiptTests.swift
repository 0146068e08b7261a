import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

/// A receipt with one fault, and the rule that refuses it.
struct BrokenReceipt: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let step: String
  let alter: @Sendable (inout AttestationAlterations) throws -> Void

  init(_ name: String, _ step: String, _ alter: @escaping @Sendable (inout AttestationAlterations) throws -> Void) {
    testDescription = name
    self.step = step
    self.alter = alter
  }
}

@Suite("Receipts that violate one rule")
struct MintedReceiptTests {
  static let broken: [BrokenReceipt] =
    [2, 3, 6, 7, 12, 21].map { type in
      BrokenReceipt("without field \(type)", "format") { $0.receipt = { $0[type] = nil } }
    }
    + [2, 3, 4, 6, 7, 12, 21].map { type in
      BrokenReceipt("with field \(type) twice", "format") {
        $0.receipt = { $0.fields.append(.init(type, $0[type] ?? [])) }
      }
    }
    + [
      ("creation", 12, "2027-01-15"), ("creation without zone", 12, "2027-01-15T08:00:00"), ("no creation", 12, ""),
      ("expiry", 21, "tomorrow"), ("type", 6, "attest"), ("type", 6, "RECEIPTS"),
      ("environment", 7, "Sandbox"), ("environment", 7, "development"), ("certificate", 3, "certificate"),
    ].map { (name, type, text) in
      BrokenReceipt("with a malformed \(name)", "format") { $0.receipt = { $0[text: type] = text } }
    }
    + [
      .init("that is not signed data", "format") { $0.statement = { $0.receipt = [0x30, 0x80, 0, 0] } },
      .init("with a trailing byte", "format") { $0.statement = { $0.receipt?.append(0) } },
      .init("from another authority", "certificate_chain") {
        $0.receiptSigner = try Minted.otherAuthority.get().receiptSigner
      },
      .init("signed by the authority of attestations", "certificate_chain") {
        $0.receiptSigner = try Minted.authority.get().attestationIntermediate
      },
      .init("signed by the intermediate", "certificate_chain") {
        $0.receiptSigner = try Minted.authority.get().receiptIntermediate
      },
      .init("signed by a certificate without the marker", "certificate_chain") {
        $0.receiptSigner = try unmarkedSigner()
      },
      .init("with a foreign certificate", "certificate_chain") {
        let other = try Minted.otherAuthority.get().receiptRoot.certificate
        $0.receiptMessage = { $0.certificates.append(other) }
      },
      .init("without the intermediate", "certificate_chain") { $0.receiptMessage = { $0.certificates.remove(at: 1) } },
      .init("without the signer's certificate", "format") { $0.receiptMessage = { $0.certificates.removeFirst() } },
      .init("with another signature", "signature") {
        let authority = try Minted.authority.get()
        $0.receiptSigner = SigningIdentity(
          certificate: authority.receiptSigner.certificate, key: try ECPrivateKey(.p256))
      },
      .init("for another app", "app_id") { $0.receipt = { $0[text: 2] = "SALLYPORT1.com.example.other" } },
      .init("for another key", "public_key") {
        let other = try otherCertificate()
        $0.receipt = { $0[3] = other }
      },
      .init("for another hash", "client_data_hash") { $0.receipt = { $0[4] = SHA256.hash([]) } },
      .init("of the first kind without a hash", "format") { $0.receipt = { $0[4] = nil } },
      .init("from the other environment", "environment") { $0.receipt = { $0[text: 7] = "production" } },
      .init("that has expired", "expiry") { $0.receipt = { $0[text: 21] = "2027-01-15T07:59:59.999999999Z" } },
    ]

  private static func unmarkedSigner() throws -> SigningIdentity {
    let (authority, key) = (try Minted.authority.get(), try ECPrivateKey(.p256))
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("Signer")), subjectPublicKeyInfo: key.spki, notBefore: Minted.instant,
      notAfter: Minted.instant.advanced(by: .seconds(1)))
    template.extensions = [.basicConstraints(isAuthority: false), .keyUsage([.digitalSignature])]
    let issuer = authority.receiptIntermediate
    return SigningIdentity(certificate: try template.signed(by: issuer.certificate, key: issuer.key), key: key)
  }

  private static func otherCertificate() throws -> [UInt8] {
    let key = try ECPrivateKey(.p256)
    return try CertificateTemplate(
      subject: DistinguishedName(.commonName("Other")), subjectPublicKeyInfo: key.spki, notBefore: Minted.instant,
      notAfter: Minted.instant
    ).selfSigned(with: key).der
  }

  @Test("The violated rule refuses the attestation and is reported", arguments: broken)
  func refuses(_ example: BrokenReceipt) throws {
    var minted = try Minted()
    try example.alter(&minted.mint.alterations)
    guard case .failure(let rejection) = try minted.outcome(of: minted.attestation()) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.step == "receipt_" + example.step, "\(rejection)")
  }

  @Test("DER and BER are accepted, fields may have any order, and fields that nothing judges are ignored")
  func ignoresForm() throws {
    var minted = try Minted()
    minted.mint.alterations.receipt = {
      $0.fields.append(.init(99, [1, 2, 3]))
      $0.fields.append(.init(99, []))
      $0.fields.append(.init(5, []))
      $0[text: 19] = "soon"
      $0.fields.reverse()
    }
    for encoding in [SignedDataTemplate.Encoding.der, .ber] {
      minted.mint.alterations.receiptMessage = {
        $0.encoding = encoding
        $0.certificates.reverse()
      }
      #expect(throws: Never.self) { try minted.outcome(of: minted.attestation()).get() }
    }
  }

  @Test("The fields may have indefinite lengths, as the message around them")
  func readsFieldsInBER() throws {
    var minted = try Minted()
    minted.mint.alterations.receiptMessage = { message in
      var file = ASN1Reader(message.content)
      message.content = []
      guard var set = try? file.enter(.set) else { return }
      var entries: [UInt8] = []
      while let entry = try? set.next(.sequence) { entries += DER.indefinite(.sequence, Array(entry.content)) }
      message.content = DER.indefinite(.set, entries)
    }
    let attestation = try AttestationObject(minted.attestation())
    #expect(attestation.receipt.kind == .attest)
    #expect(throws: Never.self) { try minted.outcome(of: attestation.bytes).get() }
  }

  @Test(
    "Times have 0 to 9 fraction digits",
    arguments: ["", ".2", ".20", ".200", ".2000", ".20000", ".200000", ".2000000", ".20000000", ".200000000"])
  func readsFractions(_ fraction: String) throws {
    var minted = try Minted()
    minted.mint.alterations.receipt = { $0[text: 12] = "2027-01-15T08:00:00\(fraction)Z" }
    let receipt = try minted.outcome(of: minted.attestation()).get().receipt
    #expect(receipt.creationTime == Minted.instant.advanced(by: fraction.isEmpty ? .zero : .milliseconds(200)))
  }

  @Test("Verification ignores the age of a receipt and the time of its renewal")
  func ignoresFreshness() throws {
    var minted = try Minted()
    for created in ["2026-01-15T08:00:00Z", "2028-01-15T08:00:00Z"] {
      minted.mint.alterations.receipt = {
        $0[text: 12] = created
        $0[text: 19] = "2029-01-15T08:00:00Z"
        $0[text: 21] = "2030-01-15T08:00:00Z"
      }
      let receipt = try minted.outcome(of: minted.attestation()).get().receipt
      #expect(receipt.creationTime == (try time(created)))
      #expect(receipt.renewableFrom == (try time("2029-01-15T08:00:00Z")))
    }
  }

  @Test("The hash in a receipt of the newer kind is not compared and may be absent")
  func ignoresHash() throws {
    var minted = try Minted()
    for hash in [SHA256.hash([]), nil] {
      minted.mint.alterations.receipt = {
        $0[text: 6] = "RECEIPT"
        $0[4] = hash
      }
      let receipt = try AttestationObject(minted.attestation()).receipt
      let verifier = ReceiptVerifier(roots: [minted.authority.receiptRoot.certificate])
      let expectation = ReceiptExpectation(
        appID: minted.app, publicKey: minted.key.publicKey.x963,
        clientDataHash: ClientDataHash(bytes: Minted.hash), environment: .development)
      #expect(throws: Never.self) { try verifier.verify(receipt, for: expectation, at: Minted.instant) }
      let explanation = verifier.explain(receipt.bytes, for: expectation, at: Minted.instant)
      #expect(explanation.holds)
      #expect(explanation.steps.filter { $0.outcome == .notChecked }.map(\.name) == ["client_data_hash"])
      // An attestation must contain a receipt of the first kind, in verification and in explanations.
      #expect(
        try minted.outcome(of: minted.attestation())
          == .failure(.receipt(.unexpectedKind(.receipt))))
    }
  }

  @Test("A receipt longer than 16 KiB is refused")
  func boundsSize() throws {
    let minted = try Minted()
    let receipt = try AttestationObject(minted.attestation()).receipt.bytes
    let long = receipt + [UInt8](repeating: 0, count: Receipt.maximumSize + 1 - receipt.count)
    #expect(throws: ReceiptRejection.tooLong(16385, limit: 16384)) { try Receipt(long) }
    #expect(throws: ReceiptRejection.notSignedData(.malformed(.trailingBytes(16384 - receipt.count)))) {
      try Receipt(Array(long.dropLast()))
    }
  }
}
