public import ByteCoding
public import Cryptography

/// Decides whether Apple made a receipt for an app's key.
///
/// How fresh a receipt must be is not decided here: it is new at registration and old ever after.
public struct ReceiptVerifier: Sendable {
  /// The marker in Apple's certificates for keys that sign receipts.
  static let marker = "1.2.840.113635.100.12.15"

  private let chains: ChainValidator

  /// `roots`: those of receipts, which are others than those of attestations. `AppleRoots.appleRootG3` for real ones.
  public init(roots: [Certificate]) {
    // One signer signs the receipts of all devices, for months.
    chains = ChainValidator(roots: roots, remembering: .everyCertificate)
  }

  /// Verifies `receipt` at `instant`.
  public func verify(
    _ receipt: Receipt, for expectation: ReceiptExpectation, at instant: Timestamp
  ) throws(ReceiptRejection) {
    for step in ReceiptStep.allCases { try check(step, of: receipt, for: expectation, at: instant) }
  }

  /// Checks one rule, independently of the others.
  func check(
    _ step: ReceiptStep, of receipt: Receipt, for expectation: ReceiptExpectation, at instant: Timestamp
  ) throws(ReceiptRejection) {
    switch step {
    case .format: break  // there would be no receipt otherwise
    case .certificateChain: try checkChain(of: receipt, at: instant)
    case .signature: guard receipt.signedData.hasValidSignature else { throw .invalidSignature }
    case .appID: try checkAppID(of: receipt, for: expectation)
    case .publicKey: try checkPublicKey(of: receipt, for: expectation)
    case .clientDataHash: try checkClientDataHash(of: receipt, for: expectation)
    case .environment: try checkEnvironment(of: receipt, for: expectation)
    case .expiry: try checkExpiry(of: receipt, at: instant)
    }
  }

  private func checkChain(of receipt: Receipt, at instant: Timestamp) throws(ReceiptRejection) {
    let signer = receipt.signedData.signer
    do throws(ChainRejection) {
      _ = try chains.validate(leaf: signer, intermediates: receipt.signedData.otherCertificates, at: instant)
    } catch {
      throw .untrustedChain(error)
    }
    guard signer.extensionValue(oid: Self.marker) != nil else { throw .markerMissing(subject: signer.subject) }
  }

  private func checkAppID(
    of receipt: Receipt, for expectation: ReceiptExpectation
  ) throws(ReceiptRejection) {
    guard receipt.appID.utf8.elementsEqual(expectation.appID.text.utf8) else {
      throw .appIDMismatch(expected: expectation.appID, found: receipt.appID)
    }
  }

  private func checkPublicKey(
    of receipt: Receipt, for expectation: ReceiptExpectation
  ) throws(ReceiptRejection) {
    guard receipt.publicKey == expectation.publicKey else {
      throw .publicKeyMismatch(expected: expectation.publicKey, found: receipt.publicKey)
    }
  }

  /// Whether `step` compares anything. Without an expectation it does not, and Apple's server mangles the hash when
  /// it makes a newer receipt: only the first one has it whole.
  func compares(_ step: ReceiptStep, of receipt: Receipt, for expectation: ReceiptExpectation) -> Bool {
    switch step {
    case .clientDataHash: expectation.kind != nil || expectation.clientDataHash != nil && receipt.kind == .attest
    case .environment: expectation.environment != nil
    case .format, .certificateChain, .signature, .appID, .publicKey, .expiry: true
    }
  }

  private func checkClientDataHash(
    of receipt: Receipt, for expectation: ReceiptExpectation
  ) throws(ReceiptRejection) {
    if let kind = expectation.kind, receipt.kind != kind { throw .unexpectedKind(receipt.kind) }
    guard let expected = expectation.clientDataHash, receipt.kind == .attest else { return }
    guard receipt.clientDataHash == expected.bytes else { throw .clientDataHashMismatch }
  }

  private func checkEnvironment(
    of receipt: Receipt, for expectation: ReceiptExpectation
  ) throws(ReceiptRejection) {
    guard let expected = expectation.environment else { return }
    guard receipt.environment == expected else {
      throw .environmentMismatch(expected: expected, found: receipt.environment)
    }
  }

  private func checkExpiry(of receipt: Receipt, at instant: Timestamp) throws(ReceiptRejection) {
    guard instant <= receipt.expirationTime else { throw .expired(receipt.expirationTime, at: instant) }
  }
}

/// The expected values of a receipt.
public struct ReceiptExpectation: Sendable, Hashable {
  /// The required kind; `nil` accepts both. A newer receipt contains no usable hash, so a client that sent one as its
  /// first would evade the comparison.
  public let kind: Receipt.Kind?
  /// The app that the receipt must be for.
  public let appID: AppID
  /// X9.62, uncompressed, 65 bytes.
  public let publicKey: [UInt8]
  /// The client data hash of the attestation; `nil` if it is no longer known.
  public let clientDataHash: ClientDataHash?
  /// `nil` if not known.
  public let environment: AttestEnvironment?

  /// Creates the expectations for a receipt.
  public init(
    kind: Receipt.Kind? = nil, appID: AppID, publicKey: [UInt8], clientDataHash: ClientDataHash? = nil,
    environment: AttestEnvironment? = nil
  ) {
    self.kind = kind
    self.appID = appID
    self.publicKey = publicKey
    self.clientDataHash = clientDataHash
    self.environment = environment
  }
}
