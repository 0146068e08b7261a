internal import OIDCClient

/// Lines for `curl --config`, so that the token is no argument, which every user of the machine could read.
enum CurlConfiguration {
  /// The lines that send `token`, and present the client's certificate if the provider's entry has one.
  static func text(token: String, certificate: ClientCertificate?) -> String {
    var lines = [("oauth2-bearer", token)]
    if let chain = certificate?.chainFile, let key = certificate?.keyFile { lines += [("cert", chain), ("key", key)] }
    return lines.map { "\($0.0) = \(quoted($0.1))\n" }.joined()
  }

  /// A value as curl(1) reads it between quotation marks.
  private static func quoted(_ text: String) -> String {
    let escapes: [Character: String] = [
      "\\": "\\\\", "\"": "\\\"", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\u{0B}": "\\v",
    ]
    return "\"" + text.map { escapes[$0] ?? String($0) }.joined() + "\""
  }
}
