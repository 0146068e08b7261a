internal import ByteCoding
internal import Commands
internal import FoundationEssentials

/// What a file of `sallyport verify android` contains: a chain, and the nonce that came with it.
struct VerifyAndroidContent {
  /// The chain as `AndroidAttestationVerifier` reads it: PEM, or a JSON array of certificates in base64.
  let chain: [UInt8]
  /// The nonce of a registration; `nil` for a chain alone.
  let nonce: [UInt8]?

  /// Recognizes the body of a registration, a JSON object, which no chain is.
  ///
  /// - Parameter name: The name of the file, for errors.
  /// - Throws: `.badData` for the body of another device, and for one without a chain or a nonce.
  init(_ content: [UInt8], named name: String) throws(Failure) {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = content.starts(with: mark) ? content.dropFirst(mark.count) : content[...]
    guard text.first(where: { !$0.isJSONSpace }) == UInt8(ascii: "{") else {
      (chain, nonce) = (content, nil)
      return
    }
    let name = TerminalText.printable(name)
    guard JSONGrammar.accepts(content, within: .request) else {
      throw Failure(
        .badData, "\(name): the body of a registration that the gate refuses as JSON",
        hint:
          "send JSON in UTF-8 without a byte order mark: at most 256 values, 64 members an object, each once, names "
          + "in ASCII")
    }
    let body: Body
    do {
      body = try JSONDecoder().decode(Body.self, from: Data(content))
    } catch {
      throw Failure(
        .badData, "\(name): not the body of an Android device's registration",
        hint: #"its form is {"platform": "android", "chain": ["base64", …], "nonce": "hex"}; those of iPhones are "#
          + "explained by `sallyport verify attestation`")
    }
    guard body.platform == "android" else {
      throw Failure(
        .badData, "\(name): platform is missing or not android, which the gate refuses",
        hint: #"add "platform": "android" to what the app sends"#)
    }
    guard let nonce = Hex.decode(lowercase: body.nonce), nonce.count == 32 else {
      throw Failure(
        .badData, "\(name): nonce is not 64 hex digits in lower case, which the gate refuses",
        hint: "send it as the gate issued it")
    }
    chain = Array(("[" + body.chain.map(JSONText.quote).joined(separator: ",") + "]").utf8)
    self.nonce = nonce
  }

  private struct Body: Decodable {
    let platform: String?
    let chain: [String]
    let nonce: String
  }
}

extension UInt8 {
  fileprivate var isJSONSpace: Bool { [0x20, 0x09, 0x0A, 0x0D].contains(self) }
}
