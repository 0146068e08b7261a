/// The extensions that a server offers in its reply to EHLO (RFC 5321, section 4.1.1.1).
struct SMTPOffers {
  /// The words of each line, in capitals.
  private let lines: [[String]]

  /// - Parameter lines: The texts of the reply. The first is the name of the server.
  init(lines: [String]) {
    // Older servers also write `AUTH=LOGIN`.
    self.lines = lines.dropFirst().map { line in
      line.uppercased().split { $0 == " " || $0 == "=" }.map(String.init)
    }
  }

  func has(_ keyword: String) -> Bool { lines.contains { $0.first == keyword } }

  /// The methods of signing in (RFC 4954).
  private var methods: [String] { lines.filter { $0.first == "AUTH" }.flatMap { $0.dropFirst() } }

  /// Whether a method is offered. A server without a list may still take a password, as PLAIN or by a token.
  func signsIn(by method: String) -> Bool { methods.contains(method) || methods.isEmpty && method != "LOGIN" }

  /// Why `wanted` cannot be used. The names come from the server: they are bounded, and only letters and digits.
  func refusal(_ wanted: String) -> DeliveryFailure {
    let offered = methods.prefix(8).map { method in
      String(method.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }.prefix(20))
    }
    return DeliveryFailure(
      reason: "the mail server offers \(offered.joined(separator: ", ")) and not \(wanted)", isTemporary: false)
  }
}
