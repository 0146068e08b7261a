extension Certificate {
  /// The DNS names of the subject (RFC 5280 section 4.2.1.6), unchanged; empty if the extension is malformed.
  public var dnsNames: [String] {
    guard let value = extensionValue(oid: "2.5.29.17") else { return [] }
    // GeneralName, dNSName [2] IMPLICIT IA5String.
    let dnsName = ASN1Tag(octet: 0x82)
    var outer = ASN1Reader(value)
    var names: [String] = []
    do throws(ASN1Error) {
      var list = try outer.enter(.sequence)
      while !list.isAtEnd {
        let element = try list.next()
        if element.tag == dnsName { names.append(String(decoding: element.content, as: UTF8.self)) }
      }
      return names
    } catch {
      return []
    }
  }
}
