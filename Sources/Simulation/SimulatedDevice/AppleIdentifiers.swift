public import Cryptography

extension ObjectIdentifier {
  /// The extension with the nonce in an attestation's leaf.
  public static let appAttestNonce = ObjectIdentifier(apple: "8.2")
  /// Extensions of the leaf that name the app and the system.
  public static let appAttestApp = ObjectIdentifier(apple: "8.5")
  /// The identifier of the extension with the system's data.
  public static let appAttestSystem = ObjectIdentifier(apple: "8.7")
  /// The extended key usage of leaves since 2026.
  public static let appAttestPurpose = ObjectIdentifier(apple: "4.24")
  /// Marks the certificate that signs receipts.
  public static let receiptMarker = ObjectIdentifier(apple: "12.15")
  /// Marks the authority that issues it.
  public static let receiptAuthorityMarker = ObjectIdentifier(apple: "6.2.3")

  /// Only for the constants above.
  private init(apple arcs: String) {
    guard let identifier = ObjectIdentifier("1.2.840.113635.100.\(arcs)") else {
      // Digits and dots under Apple's arc always are an identifier.
      preconditionFailure("not an object identifier: \(arcs)")
    }
    self = identifier
  }
}
