extension Certificate {
  /// The DNS names of the subject (RFC 5280 section 4.2.1.6), unchanged; empty if the extension is malformed.
  public var dnsNames: [String] {
    // GeneralName, dNSName [2] IMPLICIT IA5String.
    alternativeNames(ASN1Tag(octet: 0x82)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The IP addresses of the subject, of 4 or 16 bytes; empty if the extension is malformed.
  public var ipAddresses: [[UInt8]] {
    // GeneralName, iPAddress [7] IMPLICIT OCTET STRING.
    alternativeNames(ASN1Tag(octet: 0x87)).map(Array.init)
  }

  private func alternativeNames(_ tag: ASN1Tag) -> [ArraySlice<UInt8>] {
    guard let value = extensionValue(oid: "2.5.29.17") else { return [] }
    var outer = ASN1Reader(value)
    var names: [ArraySlice<UInt8>] = []
    do throws(ASN1Error) {
      var list = try outer.enter(.sequence)
      while !list.isAtEnd {
        let element = try list.next()
        if element.tag == tag { names.append(element.content) }
      }
      return names
    } catch {
      return []
    }
  }
}

extension Certificate {
  /// The identifier of the issuer's key (RFC 5280 section 4.2.1.1); `nil` if the extension is absent, malformed or
  /// names the issuer in another way.
  public var authorityKeyIdentifier: [UInt8]? {
    guard let value = extensionValue(oid: "2.5.29.35") else { return nil }
    var outer = ASN1Reader(value)
    do throws(ASN1Error) {
      var fields = try outer.enter(.sequence)
      // keyIdentifier [0] IMPLICIT OCTET STRING.
      return try fields.nextIfPresent(ASN1Tag(octet: 0x80)).map { Array($0.content) }
    } catch {
      return nil
    }
  }
}
