/// The name of a certificate's subject or issuer (X.501): attributes in order, one to each relative name.
public struct DistinguishedName: Sendable, Hashable {
  public enum Attribute: Sendable, Hashable {
    case commonName(String)
    case organization(String)
    case organizationalUnit(String)
    case state(String)
    /// Two letters.
    case country(String)
  }

  public var attributes: [Attribute]

  public init(_ attributes: Attribute...) { self.attributes = attributes }

  /// The `Name`, DER.
  var encoded: [UInt8] { DER.sequence(of: attributes.map { DER.set(of: [$0.encoded]) }) }
}

extension DistinguishedName.Attribute {
  fileprivate var encoded: [UInt8] {
    switch self {
    case .commonName(let text): DER.sequence(DER.objectIdentifier(.commonName), DER.utf8String(text))
    case .organization(let text): DER.sequence(DER.objectIdentifier(.organizationName), DER.utf8String(text))
    case .organizationalUnit(let text):
      DER.sequence(DER.objectIdentifier(.organizationalUnitName), DER.utf8String(text))
    case .state(let text): DER.sequence(DER.objectIdentifier(.stateOrProvinceName), DER.utf8String(text))
    case .country(let text): DER.sequence(DER.objectIdentifier(.countryName), DER.printableString(text))
    }
  }
}
