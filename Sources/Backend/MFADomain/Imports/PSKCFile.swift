internal import ByteCoding
internal import OneTimePasswords

/// Key containers of hardware tokens (PSKC, RFC 6030).
public enum PSKCFile {
  /// The key of an encrypted container.
  public enum Key: Sendable {
    /// The bytes of the key that both sides know (section 6.1).
    case shared([UInt8])
    /// The passphrase from which the key is derived (section 6.2).
    case passphrase(String)
  }

  /// The largest file, in bytes.
  public static let largest = 16 << 20
  private static let namespace = "urn:ietf:params:xml:ns:keyprov:pskc"

  /// Reads the tokens of a container.
  ///
  /// - Parameter key: opens encrypted values; `nil` for a container without them.
  /// - Throws: `ImportError`
  public static func read(_ document: [UInt8], key: Key?) throws(ImportError) -> [ImportedToken] {
    let root: XMLElement
    do throws(XMLFault) {
      root = try XMLReader.read(document)
    } catch {
      throw .file("line \(error.line): \(error.reason)")
    }
    guard root.name == "KeyContainer", root.namespace == namespace else {
      throw .file("line \(root.line): no KeyContainer of PSKC (RFC 6030)")
    }
    guard root.attributes["Version"] == "1.0" else {
      throw .file("line \(root.line): the version of the container is not 1.0")
    }
    let cipher = try PSKCCipher(root, key: key)
    let packages = root.children.filter { $0.name == "KeyPackage" }
    guard !packages.isEmpty else { throw .file("the container has no KeyPackage") }
    guard packages.count <= Administration.mostImported else {
      throw .file("more than \(Administration.mostImported) tokens: split the file")
    }
    var faults = TokenFaults()
    var tokens: [ImportedToken] = []
    for package in packages {
      do {
        tokens.append(try token(package, cipher))
      } catch let fault as TokenFault {
        faults.add("line \(package.line)", fault.reason)
      } catch let invalid as InvalidValue {
        faults.add("line \(package.line)", "\(invalid.field) \(invalid.rule)")
      } catch let error as ImportError {
        throw error
      } catch {
        faults.add("line \(package.line)", "\(error)")
      }
    }
    try faults.check()
    return tokens
  }

  private static func token(_ package: XMLElement, _ cipher: PSKCCipher) throws -> ImportedToken {
    let keys = package.children.filter { $0.name == "Key" }
    guard keys.count == 1, let key = keys.first else { throw TokenFault("a KeyPackage must have one Key") }
    let kind = try kind(of: key)
    let device = package["DeviceInfo"]
    guard let serial = device?["SerialNo"]?.trimmed ?? key.attributes["Id"] else {
      throw TokenFault("neither SerialNo nor the Id of the key is there")
    }
    let parameters = key["AlgorithmParameters"]
    let format = parameters?["ResponseFormat"]
    if let format, format.attributes["Encoding"] != "DECIMAL" {
      throw TokenFault("only the response encoding DECIMAL is read")
    }
    guard format?.attributes["CheckDigits"].map({ $0 == "false" || $0 == "0" }) ?? true else {
      throw TokenFault("check digits are not supported")
    }
    let digits = try format?.attributes["Length"].map { try number($0, "Length") } ?? 6
    guard let data = key["Data"], let secret = data["Secret"] else { throw TokenFault("the key has no Secret") }
    try checkPolicy(key["Policy"])
    return try ImportedToken(
      place: "line \(package.line)", serial: serial, maker: device?["Manufacturer"]?.trimmed ?? "", kind: kind,
      secret: try cipher.bytes(of: secret, "Secret"), algorithm: try algorithm(parameters?["Suite"]?.trimmed),
      digits: Int(clamping: digits),
      period: kind == .hotp ? 30 : Int(clamping: try cipher.number(data["TimeInterval"]) ?? 30),
      counter: kind == .hotp ? try cipher.number(data["Counter"]) ?? 0 : 0,
      drift: kind == .totp ? try cipher.number(data["TimeDrift"]) ?? 0 : 0)
  }

  private static func kind(of key: XMLElement) throws(TokenFault) -> OATHToken.Kind {
    let prefix = namespace + ":"
    guard let name = key.attributes["Algorithm"] else { throw TokenFault("the key has no Algorithm") }
    guard name.hasPrefix(prefix), let kind = OATHToken.Kind(rawValue: String(name.dropFirst(prefix.count))) else {
      throw TokenFault("only the algorithms hotp and totp are read, not \(String(name.unicodeScalars.prefix(80)))")
    }
    return kind
  }

  private static func algorithm(_ suite: String?) throws(TokenFault) -> TOTPAlgorithm {
    guard let suite, !suite.isEmpty else { return .sha1 }
    guard let algorithm = TOTPAlgorithm(name: suite) else {
      throw TokenFault(
        "the suite \(String(suite.unicodeScalars.prefix(40))) is none of HMAC-SHA1, HMAC-SHA256 and HMAC-SHA512")
    }
    return algorithm
  }

  /// Refuses a key that must not be used for one-time passwords, or needs a PIN in its code (section 5).
  private static func checkPolicy(_ policy: XMLElement?) throws(TokenFault) {
    guard let policy else { return }
    let usages = policy.children.filter { $0.name == "KeyUsage" }.map(\.trimmed)
    guard usages.isEmpty || usages.contains(where: { $0.hasSameBytes(as: "OTP") }) else {
      throw TokenFault("the policy of the key excludes OTP")
    }
    if let mode = policy["PINPolicy"]?.attributes["PINUsageMode"], ["Append", "Prepend", "Algorithmic"].contains(mode) {
      throw TokenFault("codes with a PIN in them are not supported (PINUsageMode \(mode))")
    }
  }

  static func number(_ text: String, _ name: String) throws(TokenFault) -> Int64 {
    // Without a sign, except in front of a drift.
    let digits = text.utf8.dropFirst(text.utf8.first == UInt8(ascii: "-") ? 1 : 0)
    guard (1...18).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
      let value = Int64(text)
    else { throw TokenFault("\(name) is not a number") }
    return value
  }
}

/// Why one token cannot be imported.
struct TokenFault: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

extension XMLElement {
  /// The text without white space around it.
  var trimmed: String {
    // By bytes: a comparison of characters takes time with the square of the number of combining marks in one.
    let bytes = text.utf8
    guard let first = bytes.firstIndex(where: Self.isText), let last = bytes.lastIndex(where: Self.isText) else {
      return ""
    }
    return String(decoding: bytes[first...last], as: UTF8.self)
  }

  /// The bytes of an `xs:base64Binary`, which may have white space in any place; `nil` for another text.
  var base64: [UInt8]? { Base64.decode(String(decoding: text.utf8.filter(Self.isText), as: UTF8.self)) }

  private static func isText(_ byte: UInt8) -> Bool { ![0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
