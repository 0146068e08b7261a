internal import ByteCoding
internal import Cryptography

/// A configuration profile (`.mobileconfig`) with two payloads: the authority's certificate, and the client's
/// identity as PKCS #12. The password is not included.
struct ConfigurationProfile {
  let name: String
  let authority: Certificate
  let client: Certificate
  let bundle: [UInt8]

  /// The profile as an XML property list.
  var propertyList: String {
    let payloads = [
      payload(
        "com.apple.security.root", "authority", of: authority, file: "ca.cer", content: authority.der),
      payload("com.apple.security.pkcs12", "identity", of: client, file: "\(name).p12", content: bundle),
    ]
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
        <key>PayloadContent</key>
        <array>
      \(payloads.joined(separator: "\n"))
        </array>
        <key>PayloadDisplayName</key>
        <string>Client certificate \(Self.escaped(name))</string>
        <key>PayloadDescription</key>
        <string>Authenticates debug builds to a sallyport gate that trusts \(Self.escaped(authority.subject)).</string>
        <key>PayloadIdentifier</key>
        <string>\(identifier)</string>
        <key>PayloadType</key>
        <string>Configuration</string>
        <key>PayloadUUID</key>
        <string>\(Self.uuid("profile", client))</string>
        <key>PayloadVersion</key>
        <integer>1</integer>
      </dict>
      </plist>

      """
  }

  private var identifier: String { "sallyport.debug-client.\(name)" }

  private func payload(
    _ type: String, _ role: String, of certificate: Certificate, file: String, content: [UInt8]
  ) -> String {
    """
        <dict>
          <key>PayloadCertificateFileName</key>
          <string>\(file)</string>
          <key>PayloadContent</key>
          <data>\(Base64.encode(content))</data>
          <key>PayloadDisplayName</key>
          <string>\(Self.escaped(certificate.subject))</string>
          <key>PayloadIdentifier</key>
          <string>\(identifier).\(role)</string>
          <key>PayloadType</key>
          <string>\(type)</string>
          <key>PayloadUUID</key>
          <string>\(Self.uuid(role, certificate))</string>
          <key>PayloadVersion</key>
          <integer>1</integer>
        </dict>
    """
  }

  /// Returns the same UUID for the same certificate, so that a profile that is exported again replaces the installed
  /// one (RFC 9562 section 5.8, version 8).
  private static func uuid(_ role: String, _ certificate: Certificate) -> String {
    var bytes = Array(SHA256.hash(Array(role.utf8) + certificate.der).prefix(16))
    bytes[6] = bytes[6] & 0x0F | 0x80
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = Hex.encode(bytes).uppercased()
    var groups: [Substring] = []
    var rest = digits[...]
    for length in [8, 4, 4, 4, 12] {
      groups.append(rest.prefix(length))
      rest = rest.dropFirst(length)
    }
    return groups.joined(separator: "-")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
