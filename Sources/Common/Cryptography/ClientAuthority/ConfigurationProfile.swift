internal import ByteCoding

/// A configuration profile (`.mobileconfig`), which installs certificates on an iPhone or a Mac.
public struct ConfigurationProfile: Sendable {
  /// A certificate, or an identity, in a profile.
  struct Payload {
    let type: String
    /// Its role in the profile, which tells its identifier from that of the others.
    let role: String
    let certificate: Certificate
    let file: String
    let content: [UInt8]

    static func authority(_ certificate: Certificate) -> Payload {
      Payload(
        type: "com.apple.security.root", role: "authority", certificate: certificate, file: "ca.cer",
        content: certificate.der)
    }
  }

  let identifier: String
  let displayName: String
  let description: String
  let payloads: [Payload]

  /// A profile with the authority of a development gate.
  ///
  /// A person must still turn on trust in it, in the device's settings.
  public init(developmentAuthority authority: Certificate) {
    identifier = "sallyport.development-authority"
    displayName = "Sallyport development"
    description = "Trusts the TLS certificates of \(authority.subject), for tests with a development gate."
    payloads = [.authority(authority)]
  }

  /// A profile with two payloads: the authority's certificate, and the client's identity as PKCS #12. The password is
  /// not included.
  init(name: String, authority: Certificate, client: Certificate, bundle: [UInt8]) {
    identifier = "sallyport.debug-client.\(name)"
    displayName = "Client certificate \(name)"
    description = "Authenticates debug builds to a sallyport gate that trusts \(authority.subject)."
    payloads = [
      .authority(authority),
      Payload(
        type: "com.apple.security.pkcs12", role: "identity", certificate: client, file: "\(name).p12", content: bundle),
    ]
  }

  /// The profile as an XML property list.
  public var propertyList: String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
      <key>PayloadContent</key>
      <array>
    \(payloads.map(element).joined(separator: "\n"))
      </array>
      <key>PayloadDisplayName</key>
      <string>\(Self.escaped(displayName))</string>
      <key>PayloadDescription</key>
      <string>\(Self.escaped(description))</string>
      <key>PayloadIdentifier</key>
      <string>\(identifier)</string>
      <key>PayloadType</key>
      <string>Configuration</string>
      <key>PayloadUUID</key>
      <string>\(uuid)</string>
      <key>PayloadVersion</key>
      <integer>1</integer>
    </dict>
    </plist>

    """
  }

  /// That of the last certificate, which is the client's if there is one.
  private var uuid: String { payloads.last.map { Self.uuid("profile", $0.certificate) } ?? "" }

  private func element(_ payload: Payload) -> String {
    """
        <dict>
          <key>PayloadCertificateFileName</key>
          <string>\(payload.file)</string>
          <key>PayloadContent</key>
          <data>\(Base64.encode(payload.content))</data>
          <key>PayloadDisplayName</key>
          <string>\(Self.escaped(payload.certificate.subject))</string>
          <key>PayloadIdentifier</key>
          <string>\(identifier).\(payload.role)</string>
          <key>PayloadType</key>
          <string>\(payload.type)</string>
          <key>PayloadUUID</key>
          <string>\(Self.uuid(payload.role, payload.certificate))</string>
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
