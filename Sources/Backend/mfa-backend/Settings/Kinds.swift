internal import ByteCoding
internal import ConfigurationEngine
internal import Foundation
internal import MFADomain

/// The kinds of values that only the backend has.
extension Kind where Value == ListenPlace {
  static var place: Kind {
    Kind(
      name: "address with port", form: "`ADDRESS:PORT` on loopback, or `unix:/path`", example: "127.0.0.1:9465"
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("unix:") { return .unix(path: try SocketPath.read(text)) }
      guard let place = ListenPlace(text) else {
        throw InvalidSetting("must be ADDRESS:PORT on loopback or unix:/path, because the backend has no TLS")
      }
      return place
    }
  }
}

extension Kind where Value == BackendSettings.AdminSocket {
  static var adminSocket: Kind {
    Kind(name: "socket", form: "`unix:/path`", schema: .matching("^unix:/"), example: "unix:/run/mfa/admin.sock") {
      text throws(InvalidSetting) in
      guard text.hasPrefix("unix:") else {
        throw InvalidSetting("must be unix:/path: access is limited by the mode of the socket")
      }
      return BackendSettings.AdminSocket(path: try SocketPath.read(text))
    }
  }
}

extension Kind where Value == HostPort {
  static var server: Kind {
    Kind(name: "server", form: "`HOST:PORT`, or `[ADDRESS]:PORT` for IPv6", example: "mail.example.com:587") {
      text throws(InvalidSetting) in
      guard let place = HostPort(text) else { throw InvalidSetting("must be HOST:PORT, or [ADDRESS]:PORT for IPv6") }
      return place
    }
  }
}

extension Kind where Value == SyslogPlace {
  static var syslog: Kind {
    Kind(
      name: "receiver", form: "`unix:/path`, `udp://HOST:PORT`, `tcp://HOST:PORT` or `tls://HOST:PORT`",
      schema: .matching("^(unix:/|(udp|tcp|tls)://)")
    ) { text throws(InvalidSetting) in
      if text.hasPrefix("unix:") { return .local(path: try SocketPath.read(text)) }
      let parts = text.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, parts[1].hasPrefix("//"), let server = HostPort(String(parts[1].dropFirst(2))),
        let transport = SyslogPlace.Transport(rawValue: String(parts[0]))
      else { throw InvalidSetting("must be unix:/path, udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT") }
      return .server(transport, host: server.host, port: server.port)
    }
  }
}

extension Kind where Value == EmailAddress {
  static var mailAddress: Kind {
    Kind(name: "e-mail address", form: "`name@domain`", example: "noreply@example.com") {
      text throws(InvalidSetting) in
      do throws(InvalidValue) { return try EmailAddress(trusted: text) } catch { throw InvalidSetting(error.rule) }
    }
  }
}

extension Kind where Value == String {
  /// The URL of the database, or `ephemeral`.
  static var database: Kind {
    Kind(
      name: "database", form: "`sqlite:///path`, `postgres://user@host/database`, or `ephemeral`",
      masked: { DatabaseURL.masked($0) }, example: "sqlite:///var/lib/mfa/mfa.db"
    ) { text throws(InvalidSetting) in
      if text == "ephemeral" { return text }
      guard ["sqlite:", "postgres:", "postgresql:"].contains(where: text.hasPrefix) else {
        throw InvalidSetting("must be sqlite:///path, postgres://… or ephemeral")
      }
      _ = try Kind<DatabaseAddress>.database("database").read(text)
      return text
    }
  }

  /// The path of a folder. The layer has already made it absolute.
  static var folder: Kind {
    let file = Kind.file
    return Kind(name: "folder", form: file.form, isPath: true, example: "templates", read: file.read)
  }

  /// The name of the service, shown to people.
  static var serviceName: Kind {
    Kind(
      name: "name", form: "1 to 64 characters on one line, without a colon",
      schema: ValueSchema(types: ["string", "number", "boolean"], pattern: "^[^:]+$", longest: 64)
    ) {
      text throws(InvalidSetting) in
      guard (1...64).contains(text.count), !text.contains(where: { $0 == ":" || $0.isNewline }) else {
        throw InvalidSetting(
          "must be 1 to 64 characters on one line, without a colon, which separates it from the account")
      }
      return text
    }
  }

  /// Where the gate's keys are: a file or a URL, without a user.
  static var keys: Kind {
    Kind(name: "file or URL", form: "a path, an `https` URL, or an `http` URL on loopback", isPath: true) {
      text throws(InvalidSetting) in
      guard WebPlace.isTrustworthy(text) else {
        throw InvalidSetting(
          "must be a file, an https URL, or an http URL on loopback: changed keys would let an attacker forge identities"
        )
      }
      guard !WebPlace.hasUser(text) else {
        throw InvalidSetting("must not contain a user or a password: the keys are public, and status shows the URL")
      }
      return text
    }
  }

  /// The URL of the SMS provider.
  static var smsServer: Kind {
    Kind(name: "URL", form: "an `https` URL, or an `http` URL on loopback", schema: .matching("^[hH][tT][tT][pP]")) {
      text throws(InvalidSetting) in
      guard let scheme = URLComponents(string: text)?.scheme?.lowercased(), ["http", "https"].contains(scheme),
        WebPlace.isTrustworthy(text)
      else { throw InvalidSetting("must be https, or http on loopback: codes and the account's token are sent there") }
      guard !WebPlace.hasUser(text) else {
        throw InvalidSetting("must not contain a user or a password: set sms.account and sms.token_file")
      }
      // The paths of the API are appended.
      return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
  }

  /// The receiver of webhooks.
  static var webhookReceiver: Kind {
    Kind(
      name: "URL", form: "an `https` URL, or an `http` URL on loopback", masked: MaskedURL.server,
      schema: .matching("^[hH][tT][tT][pP]")
    ) {
      text throws(InvalidSetting) in
      guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(), let host = parts.host,
        !host.isEmpty, parts.user == nil, parts.password == nil, parts.fragment == nil
      else { throw InvalidSetting("must be a URL without a user and without a fragment") }
      let isLocal = ["localhost", "127.0.0.1", "[::1]", "::1"].contains(host)
      guard scheme == "https" || scheme == "http" && isLocal else {
        throw InvalidSetting("must be an https URL, or an http URL on loopback: messages have names of accounts")
      }
      return text
    }
  }

  /// The name of an event in the history.
  static var auditEvent: Kind {
    Kind(name: "event", form: "the name of an event, as `mfa-backend audit` shows it", schema: .anyText) {
      text throws(InvalidSetting) in
      guard AuditEvent(rawValue: text) == nil else { return text }
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) is no event of the history",
        suggestion: Suggestions.nearest(to: text, in: AuditEvent.allCases.map(\.rawValue)))
    }
  }

  /// The URL of a request for SMS, with placeholders.
  static var smsTemplateURL: Kind {
    Kind(
      name: "URL", form: "an `https` URL, or an `http` URL on loopback", masked: MaskedURL.withoutQuery,
      schema: .matching("^[hH][tT][tT][pP]")
    ) {
      text throws(InvalidSetting) in
      // Placeholders contain characters that no URL has.
      let plain = text.replacing("{{", with: "").replacing("}}", with: "")
      guard let scheme = URLComponents(string: plain)?.scheme?.lowercased(), ["http", "https"].contains(scheme),
        WebPlace.isTrustworthy(plain)
      else { throw InvalidSetting("must be https, or http on loopback: codes and the token are sent there") }
      guard !WebPlace.hasUser(text) else {
        throw InvalidSetting("must not contain a user or a password: use a header field with {{basic}}")
      }
      return text
    }
  }

  /// A header field of a request, whose value may have a secret.
  static var requestField: Kind {
    Kind(
      name: "header field", form: "`Name: value`",
      masked: { text in
        guard let colon = text.firstIndex(of: ":") else { return "…" }
        let value = text[colon...].dropFirst().drop { $0 == " " }
        // A value that is a placeholder alone has no secret.
        let isPlaceholder =
          value.hasPrefix("{{") && value.dropFirst(2).firstRange(of: "}}")?.upperBound == value.endIndex
        return isPlaceholder ? text : text[...colon] + " …"
      }, schema: .matching("^[A-Za-z0-9-]+:")
    ) { text throws(InvalidSetting) in
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex,
        text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
      else { throw InvalidSetting("must be a line Name: value of printable ASCII") }
      return text
    }
  }

  /// The body of a request, of one line or more.
  static var requestBody: Kind {
    Kind(
      name: "text", form: "text of at most 16384 bytes",
      masked: { text in "… (\(text.utf8.count) bytes)" }
    ) { text throws(InvalidSetting) in
      guard (1...16384).contains(text.utf8.count) else {
        throw InvalidSetting("must be a text of 1 to 16384 bytes")
      }
      return text
    }
  }

  /// The issuer of an identity provider.
  static var provider: Kind {
    Kind(
      name: "URL", form: "an `https` URL, or an `http` URL on loopback", schema: .matching("^https?://"),
      example: "https://login.example.com"
    ) { text throws(InvalidSetting) in
      guard WebPlace.isIssuer(text) else {
        throw InvalidSetting(
          "must be an https URL, or an http URL on loopback, without user, query and fragment: the provider's keys "
            + "are fetched from it")
      }
      return text
    }
  }

  /// The argument of EHLO (RFC 5321, section 4.1.1.1).
  static var greeting: Kind {
    Kind(name: "host name", form: "a host name, or an address in brackets", example: "mail.example.com") {
      text throws(InvalidSetting) in
      let isName = text.utf8.allSatisfy { NetworkName.isLetterOrDigit($0) || "-.:[]".utf8.contains($0) }
      guard isName, (1...255).contains(text.utf8.count) else {
        throw InvalidSetting("must be a host name, as mail.example.com, or an address in brackets")
      }
      return text
    }
  }

  /// The domain of security keys.
  static var relyingParty: Kind {
    Kind(name: "domain", form: "a lower-case domain without scheme and port", example: "example.com") {
      text throws(InvalidSetting) in
      guard WebOrigin.isDomain(text) else {
        throw InvalidSetting("must be a lower-case domain without scheme and port, such as example.com")
      }
      return text
    }
  }
}

extension Kind where Value == ClosedRange<Int> {
  /// One status code, or a range of them.
  static var statusCodes: Kind {
    Kind(
      name: "status codes", form: "`202`, or a range such as `200-299`",
      schema: ValueSchema(
        types: ["string", "integer"], pattern: "^[1-5][0-9][0-9](-[1-5][0-9][0-9])?$", range: 200...299)
    ) { text throws(InvalidSetting) in
      let codes = text.split(separator: "-", omittingEmptySubsequences: false).compactMap { Digits.value(of: $0) }
      guard (1...2).contains(codes.count), codes.count == text.split(separator: "-").count, let first = codes.first,
        let last = codes.last, first <= last, (200...299).contains(first), (200...299).contains(last)
      else { throw InvalidSetting("must be a status code from 200 to 299, or a range such as 200-204") }
      return first...last
    }
  }
}

extension Kind where Value == [String] {
  /// Names, separated by commas.
  static func names(_ what: String) -> Kind {
    Kind(name: "list", form: "\(what), separated by commas") { text throws(InvalidSetting) in
      let names = text.split { $0 == "," || $0 == " " }.map(String.init)
      guard !names.isEmpty else { throw InvalidSetting("has none of \(what)") }
      return names
    }
  }
}

extension Kind where Value == Int? {
  /// A size of at least 64 KiB, or `off`, which is `nil`.
  static var sizeOrOff: Kind {
    Kind(
      name: "size", form: "`off`, or a size such as `64MiB`, at least `64KiB`",
      schema: ValueSchema(
        types: ["string", "integer", "boolean"], pattern: "^(off|[0-9]+([KMG]i)?B?)$", range: 65536...(1 << 40)),
      example: "64MiB"
    ) { text throws(InvalidSetting) in
      if text == "off" { return nil }
      let size = try Size.read(text)
      guard (65536...(1 << 40)).contains(size) else { throw InvalidSetting("must be from 64KiB to 1024GiB, or off") }
      return size
    }
  }

  /// A number; `off` and `0` mean no limit.
  static func numberLimit(_ range: ClosedRange<Int>) -> Kind {
    let number = Kind.countOrOff(range)
    var schema = number.schema
    schema.range = 0...range.upperBound
    return Kind(name: number.name, form: number.form, schema: schema, example: number.example) {
      text throws(InvalidSetting) in
      text == "0" ? nil : try number.read(text)
    }
  }
}

extension Kind where Value == RateSetting? {
  /// A rate; `off` and `0` mean no limit.
  static func rateLimit(_ counts: ClosedRange<Int>) -> Kind {
    let rate = Kind.rateOrOff(counts)
    let schema = ValueSchema(
      types: ["string", "integer", "boolean"], pattern: "^(off|0|[0-9]+/[0-9]+(ms|s|m|h|d))$", range: 0...0)
    return Kind(name: rate.name, form: rate.form, schema: schema, example: rate.example) {
      text throws(InvalidSetting) in
      text == "0" ? nil : try rate.read(text)
    }
  }
}

extension Kind where Value == Duration? {
  /// The wait of a recovery: one hour to thirty days, or `off`. `0` is refused.
  static var recoveryWait: Kind {
    let wait = Kind.durationOrOff(3_600_000...2_592_000_000)
    return Kind(name: wait.name, form: wait.form, schema: wait.schema, example: wait.example) {
      text throws(InvalidSetting) in
      do throws(InvalidSetting) { return try wait.read(text) } catch {
        throw InvalidSetting("must be a time from 1h to 30d, or off: the user needs time to stop a thief of the codes")
      }
    }
  }
}

extension Kind where Value == Duration {
  /// A time without a practical bound.
  static var time: Kind { .duration(0...8_640_000_000_000) }
}

/// Places on the web that settings name.
enum WebPlace {
  /// Whether `place` is a URL with a user or a password. Readiness, status and logs show the places of settings.
  static func hasUser(_ place: String) -> Bool {
    guard ["http://", "https://"].contains(where: place.lowercased().hasPrefix) else { return false }
    let authority = place.drop { $0 != ":" }.dropFirst(3).prefix { !"/?#".contains($0) }
    return authority.contains("@")
  }

  /// Whether data sent to `place` is protected from other parties: a file, https, or http on loopback.
  static func isTrustworthy(_ place: String) -> Bool {
    guard place.contains("://") else { return true }
    guard let parts = URLComponents(string: place), let host = parts.host, isHost(host),
      parts.port.map((1...65535).contains) ?? true
    else { return false }
    guard parts.scheme?.lowercased() != "https" else { return true }
    return parts.scheme?.lowercased() == "http" && ListenPlace.isLoopback(unbracketed(host))
  }

  private static func unbracketed(_ host: String) -> String {
    host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
  }

  private static func isHost(_ host: String) -> Bool {
    host.hasPrefix("[") ? NetworkName.isIPv6(unbracketed(host)) : NetworkName.isHostName(host)
  }

  /// Whether `text` may be an issuer (OpenID Connect Core 1.0, section 2). http is accepted on loopback.
  static func isIssuer(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
      ["http", "https"].contains(parts.scheme), parts.user == nil, parts.query == nil, parts.fragment == nil
    else { return false }
    return isTrustworthy(text)
  }
}
