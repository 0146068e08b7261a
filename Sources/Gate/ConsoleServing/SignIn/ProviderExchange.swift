internal import Wire
internal import Transport
internal import TransportEngine

/// The place of a document or an endpoint of an OpenID provider.
struct ProviderPlace: Sendable, Hashable {
  /// A name or an address without brackets.
  let host: String
  let port: UInt16
  let isSecure: Bool
  /// The value of `Host`.
  let authority: String
  /// The path with the query, at least `/`.
  let target: String
  /// The whole URL.
  let text: String

  private static let longest = 2000

  /// Returns `nil` unless `url` is an absolute URL of at most 2,000 bytes, without user and fragment: with `https`, or with
  /// `http` on loopback, because codes and tokens are sent there.
  init?(_ url: String) {
    let isSecure = url.hasPrefix("https://")
    guard url.utf8.count <= Self.longest, isSecure || url.hasPrefix("http://"),
      url.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !Array("#\"<>\\".utf8).contains($0) })
    else { return nil }
    let rest = url.dropFirst(isSecure ? "https://".count : "http://".count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let target = rest[authority.endIndex...]
    let isBracketed = authority.hasPrefix("[")
    let name = isBracketed ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
    let end = isBracketed ? authority[name.endIndex...].dropFirst() : authority[name.endIndex...]
    guard !name.isEmpty, !authority.contains("@"), end.isEmpty || end.hasPrefix(":") else { return nil }
    guard let port = end.isEmpty ? (isSecure ? 443 : 80) : UInt16(end.dropFirst()), port > 0 else { return nil }
    guard isSecure || ["localhost", "127.0.0.1", "::1"].contains(String(name)) else { return nil }
    (host, self.port, self.isSecure, text) = (String(name), port, isSecure, url)
    self.authority = String(isSecure && end == ":443" ? authority.dropLast(4) : authority)
    self.target = target.hasPrefix("/") ? String(target) : "/" + target
  }
}

/// Asks a provider, with one deadline for a whole exchange and a bound on its answer. Redirects are not followed: what is
/// sent is for the server that was named.
struct ProviderExchange: Sendable {
  /// The time for one exchange, from the connection to the last byte.
  static let patience = Duration.seconds(10)
  /// The maximum bytes of an answer.
  static let longest = 1 << 18

  private let engine: ClientEngine
  private let tls: ClientTLS
  private let proxies: ProxyVariables

  /// - Parameter authorityFile: PEM; `nil` for the system's authorities.
  /// - Throws: `ConsoleFileError` if the file cannot be used, or the system has no threads left.
  init(authorityFile: String?, proxies: ProxyVariables = .ofProcess) throws(ConsoleFileError) {
    self.proxies = proxies
    do throws(ServerTLS.SetupError) { tls = try ClientTLS(authorityFile: authorityFile) } catch {
      throw ConsoleFileError(
        "admin.console.oidc.ca_file", error.description, hint: "set it to a PEM file of CA certificates")
    }
    do throws(ClientError) { engine = try ClientEngine() } catch {
      throw ConsoleFileError(
        "admin.console.oidc", error.description, hint: "the system has no threads or descriptors left")
    }
  }

  /// Sends a request and returns the answer with status 200, or an answer of 400 and above with its status.
  ///
  /// - Throws: `ConsoleFault` if there is no such answer in time.
  func send(
    _ method: String, _ place: ProviderPlace, fields further: [(name: String, value: String)] = [], body: [UInt8] = []
  ) async throws(ConsoleFault) -> Response {
    var headers = HeaderFields([
      .init(name: "Host", value: place.authority), .init(name: "Accept", value: "application/json"),
    ])
    for field in further { headers.append(field.name, field.value) }
    let end = ContinuousClock.now + Self.patience
    let answer: Response
    do {
      let proxy = try proxies.proxy(for: place.isSecure ? .https : .http, host: place.host, port: place.port)
      let connection = try await engine.connect(
        host: place.host, port: place.port, tls: place.isSecure ? tls : nil, through: proxy, timeout: Self.patience)
      answer = try await connection.send(
        method, place.target, headers: headers, body: body, longest: Self.longest,
        timeout: max(.milliseconds(1), end - .now))
    } catch {
      throw ConsoleFault(
        502, "The provider \(place.authority) cannot be asked: \(error)",
        hint: "Try again. If it stays so, an administrator finds the reason in the log of the console.")
    }
    guard answer.status == 200 || (400..<600).contains(answer.status) else {
      throw ConsoleFault(502, "The provider \(place.authority) answered with status \(answer.status).")
    }
    return answer
  }
}
