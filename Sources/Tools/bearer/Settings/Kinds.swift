internal import ByteCoding
internal import ConfigurationEngine
internal import Foundation

/// How a client authenticates at the token endpoint.
enum AuthenticationMethod: String, CaseIterable {
  case none, basic, post
  case privateKey = "private_key_jwt"
  case certificate = "tls_client_auth"
  case attestation
}

extension Kind where Value == URL {
  /// A URL that is one character by character: Foundation would percent-encode what a URL cannot contain. The rules of
  /// the provider judge its scheme and its parts.
  static var url: Kind {
    Kind(name: "URL", form: "an `https` URL, or an `http` URL on loopback") { text throws(InvalidSetting) in
      if let url = URL(string: text), url.absoluteString == text { return url }
      throw InvalidSetting("must be an absolute URL, such as https://login.example.com")
    }
  }
}

extension Kind where Value == String {
  /// A program or one of its arguments, which may be empty.
  static var argument: Kind { anything(form: "the program or an argument") }

  /// The value of a parameter. Rules of the provider judge it, together with its name.
  static var parameter: Kind { anything(form: "text") }

  private static func anything(form: String) -> Kind {
    let schema = ValueSchema(types: ValueSchema.anyText.types, pattern: ".*")
    var kind = Kind(name: "text", form: form, schema: schema) { text throws(InvalidSetting) in text }
    kind.takesEmpty = true
    return kind
  }

  static var account: Kind {
    judged("account", "1 to 64 letters, digits and `-_.@+`", "^[A-Za-z0-9]", by: ProviderUse.problem(ofAccount:))
  }

  static var gitHost: Kind {
    judged(
      "host", "in lower case, with the port unless that is 443", "^[a-z0-9.:-]+$", by: ProviderUse.problem(ofHost:))
  }

  static var gitUsername: Kind {
    judged("text", "1 to 64 printable ASCII characters without spaces", "^[!-~]+$") { name in
      (1...64).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        ? nil : "must be 1 to 64 printable ASCII characters without spaces"
    }
  }

  private static func judged(
    _ name: String, _ form: String, _ pattern: String, by problem: @escaping @Sendable (String) -> String?
  ) -> Kind {
    Kind(name: name, form: form, schema: .textOrNumber(pattern)) { text throws(InvalidSetting) in
      if let problem = problem(text) { throw InvalidSetting(problem) }
      return text
    }
  }
}

extension Kind where Value == [UInt8] {
  /// The SHA-256 of a public key.
  static var pin: Kind {
    Kind(
      name: "hash", form: "`sha256/` and the base64 of 32 bytes", schema: .matching("^sha256/[A-Za-z0-9+/]{43}=$")
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("sha256/"), let hash = Base64.decode(text.dropFirst(7)), hash.count == 32 { return hash }
      throw InvalidSetting("must be sha256/ and the base64 of 32 bytes, 44 characters")
    }
  }
}
