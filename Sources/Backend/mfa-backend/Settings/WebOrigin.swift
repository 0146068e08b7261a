/// The origins of WebAuthn clients, as they stand in the client data.
enum WebOrigin {
  /// Whether `text` is a domain in the form that clients hash: lower-case letters, digits and hyphens between dots.
  /// An IP address is not a domain.
  static func isDomain(_ text: String) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= 253, labels.last?.contains(where: { !("0"..."9").contains($0) }) == true else {
      return false
    }
    return labels.allSatisfy { label in
      (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
        && label.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }
  }

  /// Whether keys of the domain `party` may be used from `origin`: an Android app, or an https page of the domain or
  /// a subdomain. For `localhost`, http is accepted as well.
  static func isAllowed(_ origin: String, for party: String) -> Bool {
    if let hash = origin.stripped(of: "android:apk-key-hash:") {
      // A SHA-256 hash in base64url.
      return hash.utf8.count == 43 && hash.utf8.allSatisfy(isBase64URL)
    }
    let local = party == "localhost" ? origin.stripped(of: "http://") : nil
    guard let place = origin.stripped(of: "https://") ?? local else { return false }
    let parts = place.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 1 || (parts.count == 2 && UInt16(parts[1]).map { $0 > 0 && String($0) == parts[1] } == true)
    else { return false }
    let host = String(parts[0])
    return isDomain(host) && (host == party || host.hasSuffix("." + party))
  }

  /// The form in which browsers write `origin`, which has the default port of its scheme; `nil` for another origin.
  static func withoutDefaultPort(_ origin: String) -> String? {
    let isDefault =
      origin.hasPrefix("https://") && origin.hasSuffix(":443") || origin.hasPrefix("http://") && origin.hasSuffix(":80")
    return isDefault ? origin.lastIndex(of: ":").map { String(origin[..<$0]) } : nil
  }

  private static func isBase64URL(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
    default: false
    }
  }
}

extension String {
  fileprivate func stripped(of prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}
