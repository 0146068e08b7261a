/// The name of a certificate's subject or issuer (X.501): attributes in order, one to each relative name.
public struct DistinguishedName: Sendable, Hashable {
  /// One attribute of a name.
  public enum Attribute: Sendable, Hashable {
    /// CN.
    case commonName(String)
    /// O.
    case organization(String)
    /// OU.
    case organizationalUnit(String)
    /// ST.
    case state(String)
    /// Two letters.
    case country(String)
  }

  /// The attributes in the order of the encoding.
  public var attributes: [Attribute]

  /// Creates a name.
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
